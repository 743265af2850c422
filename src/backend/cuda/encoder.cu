// Launches, addresses and uploads.
#include <algorithm>
#include <unordered_map>

#include "backend/cuda/device/small_copy.cuh"
#include "backend/cuda/encoder.h"
#include "graph/fork.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cuda {

namespace {

__global__ void write_small(void* to, SmallBytes from, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += blockDim.x) {
    static_cast<unsigned char*>(to)[i] = from.bytes[i];
  }
}

// One launch of a few hundred bytes costs less than one of the full size.
struct FewBytes {
  unsigned char bytes[256];
};
__global__ void write_few(void* to, FewBytes from, int count) {
  int i = static_cast<int>(threadIdx.x);
  if (i < count) {
    static_cast<unsigned char*>(to)[i] = from.bytes[i];
  }
}

// Of lists with wide entries: one a multiprocessor.
int batch_blocks() {
  static const int blocks = [] {
    check(
        cudaFuncSetAttribute(
            reinterpret_cast<const void*>(batch_kernel_wide()),
            cudaFuncAttributeMaxDynamicSharedMemorySize,
            kOwnBytes),
        "asking for shared memory");
    return std::min(device_facts().multiprocessors, kMostBlocks);
  }();
  return blocks;
}

// Names kept for an error message.
constexpr size_t kOpsKept = 64;

// The driver is opened while the library is loaded; a child forked later can
// not use it.
const int generation_of_use = detail::fork_generation();

}  // namespace

void check_not_forked() {
  if (detail::fork_generation() != generation_of_use) {
    throw std::runtime_error(
        "[cuda] the process was forked after the gpu had been used; the child "
        "cannot use it. Start processes by spawn, or use mx.cpu in the child.");
  }
}

const DeviceFacts& device_facts() {
  static const DeviceFacts facts = [] {
    cudaDeviceProp found{};
    check(cudaGetDeviceProperties(&found, 0), "asking for the device");
    return DeviceFacts{found.multiProcessorCount};
  }();
  return facts;
}

namespace {

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  check(
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
      "creating a stream");
  return stream;
}

}  // namespace

// Lanes stay: blocks know them by their address.
Encoder::Encoder(Stream)
    : stream_(make_stream()), order_(stream_), lane_(new Lane(stream_)) {
  memory().add_lane(*lane_);
  begin(*lane_);
}

Encoder::Encoder(Encoder& home)
    : home_(&home),
      stream_(make_stream()),
      order_(home.order_),
      recorded_lane_(home.lane_of_recordings()),
      list_(true) {
  lane_ = recorded_lane_.get();
  begin(home.lane());  // what blocks count in is not shared
}

void Encoder::begin(Lane& lane) {
  meetings_ = memory().malloc(sizeof(unsigned long long), lane);
  check(
      cudaMemsetAsync(meetings_->address, 0, meetings_->bytes, order_),
      "filling memory");
}

std::shared_ptr<Lane> Encoder::lane_of_recordings() {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Lane> lane = lane_of_recordings_.lock();
  if (!lane) {
    lane = std::shared_ptr<Lane>(new Lane(order_), [this](Lane* ended) {
      memory().end_lane(*ended, *lane_);
    });
    lane->is_private = true;
    memory().add_lane(*lane);
    lane_of_recordings_ = lane;
  }
  return lane;
}

// Of a recording; others live as long as the process.
Encoder::~Encoder() {
  memory().free(meetings_);
  cudaStreamDestroy(stream_);
}

namespace {

struct KnownEncoder {
  Encoder* encoder = nullptr;
  int stream = -1;
};

// What a thread used last, and who stands in there.
thread_local KnownEncoder last_used;
thread_local KnownEncoder standing_in;

}  // namespace

StandIn::StandIn(Stream s, Encoder& e) {
  standing_in = last_used = {&e, s.index};
}

StandIn::~StandIn() {
  standing_in = last_used = {};
}

Encoder& encoder(Stream s) {
  check_not_forked();
  if (last_used.stream == s.index) {
    return *last_used.encoder;
  }
  if (standing_in.stream == s.index) {
    return *standing_in.encoder;
  }
  // Streams live as long as the process, and so do their encoders.
  static std::mutex mutex;
  static auto* encoders = new std::unordered_map<int, Encoder*>;
  std::lock_guard lock(mutex);
  Encoder*& slot = (*encoders)[s.index];
  if (slot == nullptr) {
    slot = new Encoder(s);
  }
  last_used = {slot, s.index};
  return *slot;
}

void Encoder::allocate(array& out) {
  out.set_data(memory().buffer(out.nbytes(), *lane_));
}

void Encoder::allocate_like(array& out, const array& layout) {
  out.set_data(
      memory().buffer(out.nbytes(), *lane_),
      layout.data_size(),
      layout.strides(),
      layout.flags());
}

// Nobody holds the array, but another stream may still be reading it: here a
// node lets go of its inputs when it is launched, not when it is done.
bool Encoder::donate(const array& in, array& out) {
  BufferRecord* record = record_of(in.buffer());
  if (!record->is_on_device() || !is_donatable(in, out) ||
      !memory().is_only_of(block_of(record), order_)) {
    return false;
  }
  if (home_ != nullptr) {
    taken_.push_back(block_of(record));
  }
  out.copy_shared_buffer(in);
  return true;
}

array Encoder::temporary(Shape shape, Dtype dtype) {
  array made(std::move(shape), dtype, nullptr, {});
  allocate(made);
  return made;
}

bool Encoder::host_scalar(const array& a, void* to) {
  BufferRecord* record = record_of(a.buffer());
  if (a.data_size() != 1 || record->device.load() != nullptr) {
    return false;
  }
  auto* host = static_cast<const char*>(record->host.load());
  std::memcpy(to, host + a.offset(), a.itemsize());
  return true;
}

const void* Encoder::address(const array& a) {
  BufferRecord* record = record_of(a.buffer());
  BufferRecord* there = record->device.load(std::memory_order_acquire);
  Block* block = there ? block_of(there) : upload_block(record);
  if (block->lane->stream != order_) {
    met_others_ = true;
    memory().use(block, order_);
    if (home_ != nullptr) {
      foreign_.push_back(block);
    }
  }
  return static_cast<const char*>(block->address) + a.offset();
}

Block* Encoder::upload_block(BufferRecord* record) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (BufferRecord* there = record->device.load(std::memory_order_acquire)) {
    return block_of(there);
  }
  Block* block = memory().malloc(record->bytes, *lane_);
  block->device.store(nullptr, std::memory_order_relaxed);
  block->is_copy = true;
  upload(block->address, record->host.load(), record->bytes);
  record->device.store(block, std::memory_order_release);
  return block;
}

void Encoder::upload(void* to, const void* from, size_t bytes) {
  if (bytes <= SmallBytes::most) {
    int count = static_cast<int>(bytes);
    if (bytes <= sizeof(FewBytes)) {
      FewBytes few{};
      std::memcpy(few.bytes, from, bytes);
      launch(write_few, 1, 256, 0, to, few, count);
    } else {
      SmallBytes small;
      std::memcpy(small.bytes, from, bytes);
      launch(write_small, 1, 256, 0, to, small, count);
    }
    return;
  }
  if (home_ != nullptr) {
    throw std::runtime_error(
        "[cuda] bytes of the host that may change cannot be recorded.");
  }
  if (staging_ == nullptr) {
    void* pinned = nullptr;
    check(
        cudaHostAlloc(&pinned, kPieces * kPiece, cudaHostAllocDefault),
        "allocating pinned memory");
    staging_ = static_cast<char*>(pinned);
    for (cudaEvent_t& event : staged_) {
      check(
          cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
          "creating an event");
    }
  }
  for (size_t at = 0; at < bytes; at += kPiece) {
    size_t n = std::min(kPiece, bytes - at);
    char* piece = staging_ + next_piece_ * kPiece;
    cudaEvent_t event = staged_[next_piece_];
    next_piece_ = (next_piece_ + 1) % kPieces;
    check(cudaEventSynchronize(event), "copying to the gpu");
    std::memcpy(piece, static_cast<const char*>(from) + at, n);
    check(
        cudaMemcpyAsync(
            static_cast<char*>(to) + at,
            piece,
            n,
            cudaMemcpyHostToDevice,
            stream()),
        "copying to the gpu");
    check(cudaEventRecord(event, stream_), "recording an event");
  }
}

void Encoder::fill_bytes(void* to, int value, size_t bytes) {
  if (bytes > 0) {
    check(cudaMemsetAsync(to, value, bytes, stream()), "filling memory");
  }
}

void Encoder::copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) {
    check(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()),
        "copying memory");
  }
}

void Encoder::launch_kernel(
    Start start,
    const void* kernel,
    dim3 grid,
    dim3 block,
    size_t shared,
    void** args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return;
  }
  flush();
  if (start == Start::behind) {
    check(
        cudaLaunchKernel(kernel, grid, block, args, shared, stream_),
        "a launch");
    return;
  }
  check(start_early(kernel, grid, block, shared, args), "a launch");
}

cudaError_t Encoder::start_early(
    const void* kernel, dim3 grid, dim3 block, size_t shared, void** args) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream_;
  config.attrs = &early;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, kernel, args);
}

void Encoder::batch(const BatchEntry& entry) {
  if (is_waiting_) {
    launch_waiting();
  }
  if (list_.is_full(entry.kind)) {
    launch_batch();
  }
  list_.add(entry, batch_blocks());
  lane_->has_unlaunched.store(true, std::memory_order_relaxed);
  if (list_.has_wide()) {
    lane_->holds_freed.store(true, std::memory_order_relaxed);
  }
}

void Encoder::launch_batch() {
  int count = list_.count();
  bool is_wide = list_.has_wide();
  cudaError_t status;
  if (is_wide) {
    void* arguments[] = {
        &count, list_.heads(), list_.entries(), &meetings_->address};
    status = cudaLaunchCooperativeKernel(
        reinterpret_cast<const void*>(batch_kernel_wide()),
        static_cast<unsigned>(batch_blocks()),
        kWideThreads,
        arguments,
        kOwnBytes,
        stream_);
  } else {
    // The head of the long list is a short one.
    auto kernel = count <= kFewEntries
                      ? reinterpret_cast<const void*>(batch_kernel_few())
                      : reinterpret_cast<const void*>(batch_kernel_narrow());
    void* arguments[] = {&count, list_.entries()};
    status = start_early(kernel, 1, list_.threads(), 0, arguments);
  }
  list_.clear();
  lane_->has_unlaunched.store(false, std::memory_order_relaxed);
  if (is_wide) {
    memory().release_held(*lane_);
  }
  check(status, "a launch");
}

void Encoder::begin_waiting() {
  if (list_.count() > 0) {
    launch_batch();
  }
  is_waiting_ = true;
  lane_->has_unlaunched.store(true, std::memory_order_relaxed);
}

void Encoder::launch_waiting() {
  is_waiting_ = false;  // before: a launch asks for it
  lane_->has_unlaunched.store(false, std::memory_order_relaxed);
  waiting_->launch(*this);
}

void Encoder::set_op(const char* name) {
  met_others_ = false;
  if (ops_.size() == kOpsKept) {
    ops_.erase(ops_.begin(), ops_.begin() + kOpsKept / 2);
  }
  ops_.push_back(name);
}

std::string Encoder::recent_ops() {
  std::string all;
  for (size_t i = 0; i < ops_.size(); ++i) {
    bool seen = false;
    for (size_t j = i + 1; j < ops_.size(); ++j) {
      seen = seen || std::strcmp(ops_[i], ops_[j]) == 0;
    }
    if (!seen) {
      all += all.empty() ? "" : ", ";
      all += ops_[i];
    }
  }
  return all;
}

}  // namespace mlx::core::cuda
