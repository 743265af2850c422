// What kernels get to do their work: addresses on the device, memory, and
// launches on one stream. Kernels are written in .cu files as
// `void softmax(const Softmax& op, const array& x, array& out, Encoder& e)`:
// they give `out` memory and launch; they never wait.
#pragma once

#include <cuda_runtime.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/cuda/allocator.h"
#include "backend/cuda/batch_list.h"
#include "backend/cuda/check.h"
#include "backend/cuda/faults.h"
#include "mlx/array.h"
#include "mlx/stream.h"

namespace mlx::core::cuda {

/// Device memory for the length of one kernel function: freed when it goes out
/// of scope, used by what was launched until then.
class Scratch {
 public:
  explicit Scratch(Block* block) : block_(block) {}
  ~Scratch() {
    if (block_ != nullptr) {
      memory().free(block_);
    }
  }
  Scratch(Scratch&& other) : block_(std::exchange(other.block_, nullptr)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch& operator=(Scratch&&) = delete;

  template <typename T = void>
  T* get() const {
    return static_cast<T*>(block_->address);
  }

 private:
  Block* block_;
};

/// One per stream. Kernel functions run under its lock.
class Encoder {
 public:
  explicit Encoder(Stream s);
  /// For work that is recorded: it launches on a stream that can be captured;
  /// in all else it is `home`, where the recording will be launched. Recordings
  /// of one home share memory, since they run one after the other: what lies
  /// there is written before it is read in each launch.
  explicit Encoder(Encoder& home);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  /// For launches of other makers, after ours.
  cudaStream_t stream() {
    flush();
    return stream_;
  }

  /// The device address of an array's first element; bytes that are on the
  /// host are copied to the device first.
  template <typename T = void>
  const T* in(const array& a) {
    return static_cast<const T*>(address(a));
  }
  /// The same for an output that has been allocated.
  template <typename T = void>
  T* out(array& a) {
    return static_cast<T*>(const_cast<void*>(address(a)));
  }

  /// Gives `out` new row-major memory, or memory laid out like `layout`, which
  /// has no gaps.
  void allocate(array& out);
  void allocate_like(array& out, const array& layout);
  /// Gives `out` the memory of `in` where nobody else needs it (equal shapes
  /// and strides wanted by the caller); says whether it did.
  bool donate(const array& in, array& out);
  /// The same for results that may be noted: while every block may do what is
  /// noted, a small result does not replace an operand.
  bool donate_to_noted(const array& in, array& out) {
    bool is_small = out.size() <= BatchEntry::most_elements;
    return !(is_small && list_.has_wide()) && donate(in, out);
  }
  /// An array of the kernel's own, e.g. a row-major copy of an input.
  array temporary(Shape shape, Dtype dtype);
  Scratch scratch(size_t bytes) {
    return Scratch(memory().malloc(bytes, *lane_));
  }

  /// Whether the array is one element that the host has and the device has
  /// not: its bytes then travel with a launch. Fills `to` (16 bytes).
  static bool host_scalar(const array& a, void* to);

  /// kernel<<<grid, block, shared>>>(args...). A grid with no blocks is fine.
  template <typename... P, typename... A>
  void launch(
      void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A&&... args) {
    launch_at(
        Start::behind, kernel, grid, block, shared, std::forward<A>(args)...);
  }
  /// The same for a kernel that waits for earlier work by itself, as
  /// device/overlap.cuh tells: its blocks take the places that the last ones
  /// of such a kernel before it leave.
  template <typename... P, typename... A>
  void launch_overlapped(
      void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A&&... args) {
    launch_at(
        Start::early, kernel, grid, block, shared, std::forward<A>(args)...);
  }

  /// The same for a kernel that is known by its handle, with the addresses of
  /// its arguments.
  void launch_overlapped(
      const void* kernel,
      dim3 grid,
      dim3 block,
      size_t shared,
      void** arguments) {
    launch_kernel(Start::early, kernel, grid, block, shared, arguments);
  }

  /// Whether the operation under way may be noted in the list of small ones:
  /// all its arrays are this stream's own.
  bool can_batch() const { return !met_others_; }
  /// The same for an entry that all blocks share. Recorded launches that
  /// overlap cost less than meetings: SmolLM2 in bfloat16 796 in place of 619
  /// tokens a second, in float32 the same (H200).
  bool can_batch_wide() const { return can_batch() && !is_recording(); }
  bool is_recording() const { return home_ != nullptr; }
  /// Whether operations have been noted that are not launched yet.
  bool is_collecting() const { return list_.count() > 0; }
  /// Notes it; what is launched later comes after it.
  void batch(const BatchEntry& entry);
  /// Work of another kind that waits for more like it. Of this and the list of
  /// small operations one at most is not empty.
  struct Waiting {
    virtual ~Waiting() = default;
    virtual void launch(Encoder& e) = 0;
  };
  /// The stream's own W, a kind of Waiting; always the same one.
  template <typename W>
  W& waiting() {
    if (!waiting_) {
      waiting_ = std::make_unique<W>();
    }
    return static_cast<W&>(*waiting_);
  }
  /// Something is added to it: what has been noted before comes first.
  void begin_waiting();

  /// Launches what has been noted.
  void flush() {
    if (list_.count() > 0) {
      launch_batch();
    }
    if (is_waiting_) {
      launch_waiting();
    }
  }

  void fill_bytes(void* to, int value, size_t bytes);
  void copy_bytes(void* to, const void* from, size_t bytes);
  /// Bytes of the host, which may change or go as soon as this returns.
  void upload(void* to, const void* from, size_t bytes);

  std::mutex& mutex() { return mutex_; }
  Lane& lane() { return *lane_; }

  /// What is submitted now, for errors found later.
  void set_op(const char* name);
  /// The operations since the last call that found no error.
  std::string recent_ops();
  void forget_ops() { ops_.clear(); }
  /// What kernels find wrong with their data.
  Faults& faults() { return home_ ? home_->faults() : faults_; }

  /// While work is recorded: inputs' blocks that results have taken over, and
  /// blocks of other streams.
  const std::vector<Block*>& taken() const { return taken_; }
  const std::vector<Block*>& foreign() const { return foreign_; }

 private:
  /// When blocks of a kernel may begin: behind all earlier work, or before.
  enum class Start { behind, early };

  template <typename... P, typename... A>
  void launch_at(
      Start start,
      void (*kernel)(P...),
      dim3 grid,
      dim3 block,
      size_t shared,
      A&&... args) {
    static_assert(sizeof...(P) == sizeof...(A));
    std::tuple<P...> values(std::forward<A>(args)...);
    void* addresses[sizeof...(P)];
    fill_addresses(values, addresses, std::index_sequence_for<P...>());
    launch_kernel(
        start,
        reinterpret_cast<const void*>(kernel),
        grid,
        block,
        shared,
        addresses);
  }
  template <typename Tuple, size_t... i>
  static void fill_addresses(
      Tuple& values, void** addresses, std::index_sequence<i...>) {
    ((addresses[i] =
          const_cast<void*>(static_cast<const void*>(&std::get<i>(values)))),
     ...);
  }

  void begin(Lane& lane);
  std::shared_ptr<Lane> lane_of_recordings();
  const void* address(const array& a);
  Block* upload_block(BufferRecord* record);
  cudaError_t start_early(
      const void* kernel, dim3 grid, dim3 block, size_t shared, void** args);
  void launch_batch();
  void launch_waiting();
  void launch_kernel(
      Start start,
      const void* kernel,
      dim3 grid,
      dim3 block,
      size_t shared,
      void** args);

  Encoder* home_ = nullptr;
  cudaStream_t stream_;
  cudaStream_t
      order_;  // the stream in whose order memory is used: ours, home's
  Lane* lane_;
  std::shared_ptr<Lane> recorded_lane_;     // of a recording
  std::weak_ptr<Lane> lane_of_recordings_;  // of their home
  std::mutex mutex_;
  BatchList list_;
  Block* meetings_ = nullptr;
  std::vector<Block*> taken_;
  std::vector<Block*> foreign_;
  std::unique_ptr<Waiting> waiting_;
  bool is_waiting_ = false;
  bool met_others_ = false;
  std::vector<const char*> ops_;
  Faults faults_;

  // Pinned memory on the way to the device, in pieces used in turn.
  static constexpr int kPieces = 4;
  static constexpr size_t kPiece = size_t(2) << 20;
  char* staging_ = nullptr;
  cudaEvent_t staged_[kPieces] = {};
  int next_piece_ = 0;
};

/// The encoder of a stream, made on first use.
Encoder& encoder(Stream s);

/// For the calling thread, `e` stands in for the encoder of `s`.
class StandIn {
 public:
  StandIn(Stream s, Encoder& e);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
};

/// Facts about the device that launches need.
struct DeviceFacts {
  int multiprocessors;
};
const DeviceFacts& device_facts();

/// Blocks of `threads` for `items`, at most so many a multiprocessor; kernels
/// loop over the rest.
inline dim3 grid_for(size_t items, int threads, int most_per_processor = 16) {
  size_t blocks = (items + threads - 1) / threads;
  size_t most = static_cast<size_t>(device_facts().multiprocessors) *
                static_cast<size_t>(most_per_processor);
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

}  // namespace mlx::core::cuda
