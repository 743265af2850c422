// The executor of fused parts with reductions: how many threads take a row, and
// how much of it each.
#include <algorithm>

#include "backend/cuda/compiled.h"
#include "backend/cuda/compiled_plan.h"
#include "backend/cuda/elementwise.h"

namespace mlx::core::cuda {

namespace {

// What a thread holds at most, in bytes, and computes, in instructions.
constexpr size_t kMostHeld = 384;
constexpr int kMostWeight = 800;

// What all elements of a row need.
struct RowNeeds {
  size_t widest = 1;  // bytes of an element
  size_t bytes = 0;   // of an element of all inputs
  int weight = 1;
};

RowNeeds needs_of(
    const FusedProgram& program,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    const FusedLayouts& layouts,
    const FusedForm& form) {
  RowNeeds needs;
  needs.weight = std::max(1, fused_weight(program, form));
  for (size_t k = 0; k < inputs.size(); ++k) {
    bool is_row =
        is_number(inputs[k]) ||
        layouts.read_of(form.inputs[k].layout, 1, false) == FusedRead::splat;
    if (!is_row) {
      needs.widest = std::max(needs.widest, inputs[k].itemsize());
      needs.bytes += inputs[k].itemsize();
    }
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!form.outputs[k].is_row) {
      needs.widest = std::max(needs.widest, outputs[k].itemsize());
    }
  }
  return needs;
}

// Elements of an access: rows are whole packs of them.
int pack_of(
    const RowNeeds& needs,
    int64_t length,
    const std::vector<array>& outputs,
    const FusedCall& call) {
  auto pack = static_cast<int64_t>(16 / needs.widest);
  auto fits = [&] {
    bool even = length % pack == 0;
    for (size_t k = 0; k < outputs.size(); ++k) {
      size_t bytes = static_cast<size_t>(pack) * outputs[k].itemsize();
      bool is_full = call.form.outputs[k].layout == 0;
      even = even && (!is_full || is_aligned(call.to[k], bytes));
    }
    return even;
  };
  while (pack > 1 && !fits()) {
    pack /= 2;
  }
  return static_cast<int>(pack);
}

// Few rows want many threads each; of many, other blocks read while one
// combines, and fewer threads wait for each other.
dim3 split_row(
    const RowNeeds& needs, int64_t rows, int64_t length, FusedForm& form) {
  int pack = form.pack;
  int64_t total = length / pack;
  int most = pack == 1 ? 8 : 4;
  auto held = [&](int packs) {
    return static_cast<size_t>(packs * pack) * needs.bytes;
  };
  while (most > 1 &&
         (held(most) > kMostHeld || most * pack * needs.weight > kMostWeight)) {
    most /= 2;
  }
  if (total > int64_t(most) * kFusedRowThreads) {
    form.kind = FusedForm::Kind::walked;
    int packs = 1;
    while (packs < most && held(2 * packs) <= 64) {
      packs *= 2;
    }
    form.packs = static_cast<uint8_t>(packs);
    return dim3(kFusedRowThreads);
  }
  form.kind = FusedForm::Kind::held;
  bool is_few = rows < 4 * device_facts().multiprocessors;
  int64_t target = is_few ? kFusedRowThreads : 32;
  int packs = 1;
  while (packs < most && total > packs * target) {
    packs *= 2;
  }
  form.packs = static_cast<uint8_t>(packs);
  int64_t width = (total + packs - 1) / packs;
  if (width > 32) {
    return dim3(static_cast<unsigned>((width + 31) / 32 * 32));
  }
  unsigned lanes = 1;
  while (lanes < width) {
    lanes *= 2;
  }
  return dim3(lanes, 128 / lanes);
}

}  // namespace

void compiled_rows(
    const Compiled& op,
    const std::vector<array>& given,
    const Shape& shape,
    std::vector<array>& outputs,
    Encoder& e) {
  const FusedProgram& program = op.program();
  bool any_transposed =
      std::any_of(given.begin(), given.end(), [&](const array& in) {
        return is_transposed(in, shape);
      });
  std::vector<array> copies;
  if (any_transposed) {
    copies = with_rows(given, shape, e);
  }
  // No copy of the given arrays: those would keep them from being taken over.
  const std::vector<array>& inputs = any_transposed ? copies : given;
  allocate_outputs(inputs, shape, nullptr, outputs, e);
  FusedCall call(program, inputs, outputs, e);
  FusedForm& form = call.form;
  FusedLayouts layouts(shape, inputs, outputs, form, true);
  size_t size = element_count(shape);
  int64_t length = shape.back();
  auto rows = static_cast<int64_t>(size) / length;
  RowNeeds needs = needs_of(program, inputs, outputs, layouts, form);
  form.pack = static_cast<uint8_t>(pack_of(needs, length, outputs, call));
  dim3 block = split_row(needs, rows, length, form);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!is_number(inputs[k])) {
      size_t bytes = form.pack * inputs[k].itemsize();
      form.inputs[k].read = layouts.read_of(
          form.inputs[k].layout, form.pack, is_aligned(call.from[k], bytes));
    }
  }
  call.head = {static_cast<uint64_t>(rows), static_cast<uint64_t>(length)};
  dim3 grid(static_cast<unsigned>((rows + block.y - 1) / block.y));
  call.launch(op, layouts, grid, block, e);
}

}  // namespace mlx::core::cuda
