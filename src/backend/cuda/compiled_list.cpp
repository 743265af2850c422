// Collecting calls of fused programs.
#include "backend/cuda/compiled_list.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/jit.h"

namespace mlx::core::cuda {

namespace {

// As much work as hides a launch many times over: what is launched then runs
// while the host goes on collecting.
constexpr size_t kEnoughBytes = size_t(256) << 20;

// Of 32764 bytes of arguments that a kernel takes.
constexpr size_t kMostBytes = 32000;

// Arguments of so many words that fit into one launch, an even number.
size_t most_calls(size_t words) {
  size_t fit = (kMostBytes - 8) / (8 * words + 4);
  return std::min<size_t>(fit & ~size_t(1), 256);
}

// The memory that an array is in; null while only the host has it.
const void* memory_of(const array& a) {
  return record_of(a.buffer())->device.load(std::memory_order_acquire);
}

}  // namespace

bool FusedList::will_write(const std::vector<array>& arrays) const {
  return !calls_.written.empty() &&
         std::any_of(arrays.begin(), arrays.end(), [&](const array& a) {
           return calls_.written.count(memory_of(a)) > 0;
         });
}

bool FusedList::is_apart(
    const std::vector<array>& inputs, const std::vector<array>& outputs) const {
  return !will_write(inputs) && !will_write(outputs) &&
         std::none_of(outputs.begin(), outputs.end(), [&](const array& a) {
           return calls_.read.count(memory_of(a)) > 0;
         });
}

void FusedList::add(
    const Compiled& op,
    const FusedCall& call,
    const FusedLayouts& layouts,
    uint32_t blocks,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    Encoder& e) {
  std::vector<uint64_t> words = call.words(layouts);
  size_t most = most_calls(words.size());
  if (most < 2 || blocks > (1u << 30) || !e.can_batch()) {
    call.launch(op, layouts, dim3(blocks), dim3(kFusedThreads), e);
    return;
  }
  bool goes_on = !calls_.begins.empty() && call.form == calls_.form &&
                 op.program() == calls_.program && is_apart(inputs, outputs);
  if (!goes_on) {
    e.flush();
    calls_.kernels = FusedKernels::of(op);
    calls_.program = op.program();
    calls_.form = call.form;
  }
  e.begin_waiting();
  calls_.words.insert(calls_.words.end(), words.begin(), words.end());
  calls_.begins.push_back(calls_.blocks);
  calls_.blocks += blocks;
  for (const array& in : inputs) {
    calls_.bytes += in.data_size() * in.itemsize();
    calls_.read.insert(memory_of(in));
    calls_.inputs.push_back(in);
  }
  for (const array& out : outputs) {
    calls_.bytes += out.nbytes();
    calls_.written.insert(memory_of(out));
  }
  if (calls_.begins.size() == most || calls_.bytes >= kEnoughBytes ||
      calls_.blocks > (1u << 30)) {
    e.flush();
  }
}

void FusedList::launch(Encoder& e) {
  Calls calls = std::exchange(calls_, {});
  size_t count = calls.begins.size();
  std::vector<uint64_t> argument;
  if (count == 1) {
    argument = std::move(calls.words);
  } else {
    size_t words = calls.words.size() / count;
    size_t room = most_calls(words);
    for (size_t less : {128, 32, 8}) {
      room = less >= count && less < room ? less : room;
    }
    calls.form.many = static_cast<uint16_t>(room);
    argument.resize(1 + room / 2 + room * words);
    argument[0] = count;
    std::memcpy(&argument[1], calls.begins.data(), count * sizeof(uint32_t));
    std::copy(calls.words.begin(), calls.words.end(), &argument[1 + room / 2]);
  }
  void* address = argument.data();
  jit::launch_overlapped(
      calls.kernels->find(calls.program, calls.form),
      dim3(calls.blocks),
      dim3(kFusedThreads),
      &address,
      e);
}

}  // namespace mlx::core::cuda
