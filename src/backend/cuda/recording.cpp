#include "backend/cuda/recording.h"

#include <algorithm>

#include "backend/cuda/copy.h"
#include "backend/cuda/device/small_copy.cuh"

namespace mlx::core::cuda {

namespace {

// What the recordings of a stream may take, as a share of the memory.
constexpr size_t kShare = 8;

Block* block_of_array(const array& a) {
  return block_of(record_of(a.buffer())->device.load());
}

bool holds(const std::vector<Block*>& blocks, const Block* block) {
  return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
}

/// While work is recorded, memory that it lets go is still to be used by it:
/// the lock keeps it from this stream's other threads, this from other streams.
class NotLaunched {
 public:
  explicit NotLaunched(Encoder& home) : lane_(home.lane()) {
    home.stream();
    set(true);
  }
  ~NotLaunched() { set(false); }
  NotLaunched(const NotLaunched&) = delete;
  NotLaunched& operator=(const NotLaunched&) = delete;

 private:
  void set(bool yes) {
    lane_.has_unlaunched.store(yes, std::memory_order_relaxed);
  }
  Lane& lane_;
};

}  // namespace

Recorded CudaRecording::record(
    Stream s,
    std::vector<array> inputs,
    const std::vector<bool>& stays,
    const SubmitWork& work) {
  Encoder& home = encoder(s);
  auto made = std::make_shared<CudaRecording>(home);
  std::lock_guard lock(home.mutex());
  home.set_op("recorded");
  std::vector<array> given = made->place_inputs(inputs, stays);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (stays[i]) {
      // Nobody else holds it, so that its memory can be taken over.
      array gone = std::move(inputs[i]);
    }
  }
  NotLaunched not_launched(home);
  std::vector<array> results = made->capture(s, std::move(given), work);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!stays[i]) {
      made->copy_in(inputs[i], *made->inputs_[i].copy);
    }
  }
  made->launch();
  bool lasts = made->fits();
  for (array& result : results) {
    lasts &= made->keep(result);
    if (block_of_array(result)->lane == &made->own_->lane()) {
      result = made->copy_out(result);
    }
  }
  return {std::move(results), lasts ? std::move(made) : nullptr};
}

CudaRecording::CudaRecording(Encoder& home)
    : home_(home), own_(std::make_unique<Encoder>(home)) {}

CudaRecording::~CudaRecording() {
  if (graph_ != nullptr) {
    cudaGraphExecDestroy(graph_);
  }
}

// What the work gets: the inputs that stay themselves, room for others.
std::vector<array> CudaRecording::place_inputs(
    const std::vector<array>& inputs, const std::vector<bool>& stays) {
  std::vector<array> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const array& in = inputs[i];
    Input kept;
    if (stays[i]) {
      home_.in(in);  // may bring it to the device
      kept.block = block_of_array(in);
      kept.offset = in.offset();
      kept.strides = in.strides();
      given.push_back(in);
    } else {
      kept.copy = own_->temporary(in.shape(), in.dtype());
      given.push_back(*kept.copy);
    }
    inputs_.push_back(std::move(kept));
  }
  return given;
}

std::vector<array> CudaRecording::capture(
    Stream s, std::vector<array> inputs, const SubmitWork& work) {
  cudaStream_t stream = own_->stream();
  check(
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
      "beginning to record");
  cudaGraph_t graph = nullptr;
  auto end = [&] {
    std::lock_guard lock(own_->mutex());
    // What was noted is recorded too.
    return cudaStreamEndCapture(own_->stream(), &graph);
  };
  std::vector<array> results;
  try {
    StandIn stand_in(s, *own_);
    results = work(std::move(inputs));
  } catch (...) {
    end();
    if (graph != nullptr) {
      cudaGraphDestroy(graph);
    }
    throw;
  }
  check(end(), "recording");
  cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "making a graph");
  for (Input& input : inputs_) {
    input.is_taken = holds(own_->taken(), input.block);
  }
  return results;
}

bool CudaRecording::fits() const {
  return own_->lane().bytes <= memory().memory_limit() / kShare;
}

// Notes where a result lies; false where it lies in neither place.
bool CudaRecording::keep(const array& result) {
  Block* block = block_of_array(result);
  if (block->lane == &own_->lane()) {
    Result held{result};
    results_.push_back(std::move(held));
    return true;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    auto itemsize = static_cast<int64_t>(result.itemsize());
    int64_t bytes = result.offset() - input.offset;
    if (input.block == block && bytes % itemsize == 0) {
      results_.push_back(
          {array(result.shape(), result.dtype(), nullptr, {}),
           static_cast<int>(i),
           result.strides(),
           result.flags(),
           result.data_size(),
           bytes / itemsize});
      return true;
    }
  }
  return false;
}

bool CudaRecording::is_where_it_was(
    const Input& input, const array& now) const {
  BufferRecord* there = record_of(now.buffer())->device.load();
  return there != nullptr && block_of(there) == input.block &&
         now.offset() == input.offset && now.strides() == input.strides &&
         (!input.is_taken ||
          (now.is_donatable() &&
           memory().is_only_of(input.block, input.block->lane->stream)));
}

std::optional<std::vector<array>> CudaRecording::replay(
    std::vector<array>& inputs) {
  std::lock_guard lock(home_.mutex());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs_[i].copy && !is_where_it_was(inputs_[i], inputs[i])) {
      return std::nullopt;
    }
  }
  home_.set_op("recorded");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_[i].copy) {
      copy_in(inputs[i], *inputs_[i].copy);
    } else {
      home_.in(inputs[i]);  // of another stream: it must be ready
    }
  }
  launch();
  std::vector<array> results;
  results.reserve(results_.size());
  for (const Result& kept : results_) {
    if (kept.input < 0) {
      results.push_back(copy_out(kept.like));
      continue;
    }
    array view(kept.like.shape(), kept.like.dtype(), nullptr, {});
    const array& in = inputs[static_cast<size_t>(kept.input)];
    // Counted in elements of the result, which may be of another size.
    array start(Shape{}, kept.like.dtype(), nullptr, {});
    start.copy_shared_buffer(in);
    view.copy_shared_buffer(
        start, kept.strides, kept.flags, kept.data_size, kept.from_input);
    results.push_back(std::move(view));
  }
  inputs.clear();
  return results;
}

// A few bytes of the host travel with a launch.
void CudaRecording::copy_in(const array& from, array& to) {
  BufferRecord* record = record_of(from.buffer());
  if (record->device.load() == nullptr && from.flags().row_contiguous &&
      from.nbytes() <= SmallBytes::most) {
    auto* host = static_cast<const char*>(record->host.load());
    home_.upload(home_.out(to), host + from.offset(), from.nbytes());
    return;
  }
  copy_strided(
      home_.in(from),
      from.strides(),
      home_.out(to),
      to.strides(),
      from.shape(),
      from.itemsize(),
      home_);
}

array CudaRecording::copy_out(const array& from) {
  array out(from.shape(), from.dtype(), nullptr, {});
  copy_into_new(from, out, home_);
  return out;
}

void CudaRecording::launch() {
  for (Block* block : own_->foreign()) {
    memory().use(block, home_.stream());
  }
  check(cudaGraphLaunch(graph_, home_.stream()), "launching a graph");
}

}  // namespace mlx::core::cuda
