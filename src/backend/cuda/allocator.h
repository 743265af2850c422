// The caching pool for device memory. A block belongs to a lane, the memory of
// one stream: freed while kernels still run on it, it goes to the lane's next
// caller, whose kernels come later in the same stream. A stream that used
// another lane's block is waited for (on the device) when the block is freed.
// Blocks below 1 MiB are cut from chunks of 32 MiB that are kept for good;
// larger ones are allocations of their own and make up the cache that limits
// and clear_cache speak of.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "backend/buffer.h"
#include "backend/common/size_class.h"
#include "mlx/allocator.h"

namespace mlx::core::cuda {

struct Block;

/// The memory of one stream.
struct Lane {
  explicit Lane(cudaStream_t stream) : stream(stream) {}

  cudaStream_t stream;
  /// A lane of work that is recorded: its blocks are nobody else's.
  bool is_private = false;
  /// What it has had from the device.
  size_t bytes = 0;
  /// Work that was noted but not launched may use what has been freed: other
  /// streams cannot wait for it yet.
  std::atomic<bool> has_unlaunched{false};
  /// Small blocks that are freed wait in `held` for the next launch, so that
  /// results of noted operations lie apart.
  std::atomic<bool> holds_freed{false};
  Block* held = nullptr;
  /// Who gets the blocks of a lane that has ended.
  Lane* heir = nullptr;
  std::array<Block*, SizeClass::count> free_blocks{};
};

struct Block : BufferRecord {
  void* address = nullptr;
  Lane* lane = nullptr;
  Block* next = nullptr;
  int size_class = 0;
  /// A copy of a host's block: other streams must wait for the upload.
  bool is_copy = false;
  /// Streams beside the lane's own that work with it.
  std::vector<cudaStream_t> users;
  /// What `host` points to.
  allocator::Buffer host_copy{nullptr};
};

class CudaMemory final : public DeviceMemory {
 public:
  /// Knows the current device.
  CudaMemory();

  /// At least `bytes` for work on the lane's stream. Raises
  /// std::runtime_error with what was asked, is in use and is free.
  Block* malloc(size_t bytes, Lane& lane);

  /// A buffer for array::set_data; allocator::free takes it back.
  allocator::Buffer buffer(size_t bytes, Lane& lane) {
    return allocator::Buffer(static_cast<BufferRecord*>(malloc(bytes, lane)));
  }

  /// Says that `stream` works with the block, which must be ready by then.
  void use(Block* block, cudaStream_t stream);

  /// Whether no other stream has worked with the block.
  bool is_only_of(const Block* block, cudaStream_t stream);

  /// What a lane has held may be used again.
  void release_held(Lane& lane);

  /// Makes `from`'s blocks those of `heir`.
  void end_lane(Lane& from, Lane& heir);
  void add_lane(Lane& lane);

  void free(BufferRecord* record) override;
  void* fetch(BufferRecord* record) override;
  void read(
      BufferRecord* record, size_t offset, size_t bytes, void* to) override;

  size_t active_memory() const override { return active_.load(relaxed); }
  size_t cache_memory() const override { return cached_.load(relaxed); }
  size_t memory_limit() const override { return memory_limit_.load(relaxed); }
  size_t set_memory_limit(size_t limit) override {
    return memory_limit_.exchange(limit, relaxed);
  }
  size_t set_cache_limit(size_t limit) override;
  void clear_cache() override;

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  // These want the lock.
  Block* take(Lane& lane, SizeClass wanted);
  Block* take_from_others(Lane& lane, SizeClass wanted);
  Block* pop(Lane& lane, int size_class);
  void push(Lane& lane, Block* block);
  void push_held(Lane& lane);
  Block* fresh(Lane& lane, SizeClass wanted, size_t asked);
  void* from_device(SizeClass wanted);
  void shrink_cache(size_t most);
  void wait_for(cudaStream_t waiting, cudaStream_t first);
  [[noreturn]] void out_of_memory(size_t asked);

  std::mutex mutex_;
  std::vector<Lane*> lanes_;
  char* chunk_ = nullptr;
  size_t chunk_left_ = 0;
  cudaEvent_t crossing_ = nullptr;
  std::atomic<size_t> active_{0};
  std::atomic<size_t> cached_{0};
  std::atomic<size_t> memory_limit_{0};
  std::atomic<size_t> cache_limit_{0};

  // Wants the other lock.
  void copy_out(Block* block, size_t offset, size_t bytes, void* to);

  // Copies to the host go through here.
  std::mutex copy_mutex_;
  cudaStream_t copy_stream_ = nullptr;
  std::array<void*, 2> staging_{};
  std::array<cudaEvent_t, 2> staged_{};
};

/// Made on first use; lives until the process ends.
CudaMemory& memory();

inline Block* block_of(BufferRecord* record) {
  return static_cast<Block*>(record);
}

}  // namespace mlx::core::cuda
