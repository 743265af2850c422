// The caching allocator for host memory. Fresh pages cost 2 to 9 GB/s (the
// kernel zeroes them, one fault for each), reused ones nothing, so freed blocks
// are kept by size class and go back to the system only by a limit, the least
// recently used first. Small blocks and those between 1 and 2 MiB come from the
// C library, those between (64 KiB and more) from arena.h, larger ones from
// mmap, aligned to 2 MiB and with huge pages asked for.
//
// One spin lock guards lists and counters, so the counters are exact at any
// moment and an allocation from the cache costs one atomic exchange; calls to
// the system happen outside of it. malloc and free of a cached block together
// take 22 ns on one core of an EPYC (Zen 3), of any size.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/buffer.h"
#include "backend/common/size_class.h"
#include "backend/cpu/spin_lock.h"
#include "mlx/allocator.h"

namespace mlx::core::cpu {

class CpuAllocator final : public allocator::Allocator {
 public:
  CpuAllocator(size_t memory_limit, size_t cache_limit);

  // Gives the cache back; blocks in use stay.
  ~CpuAllocator() override;

  allocator::Buffer malloc(size_t size) override;
  void free(allocator::Buffer buffer) override;
  size_t size(allocator::Buffer buffer) const override;

  // Memory of the caller is not counted. free and release each take either
  // kind of buffer and do what is right for it.
  allocator::Buffer make_buffer(void* ptr, size_t size) override;
  void release(allocator::Buffer buffer) override;

  size_t active_memory() const { return active_.load(relaxed); }
  size_t peak_memory() const { return peak_.load(relaxed); }
  size_t cache_memory() const { return cached_.load(relaxed); }
  size_t memory_limit() const { return memory_limit_.load(relaxed); }
  size_t cache_limit() const { return cache_limit_.load(relaxed); }
  void reset_peak_memory();
  /// The most of host and device memory together, told by the device.
  void note_peak(size_t active);
  size_t set_memory_limit(size_t limit);
  size_t set_cache_limit(size_t limit);
  void clear_cache();

  // For fork: a child must not inherit a lock that another thread held.
  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr int words = (SizeClass::count + 63) / 64;

  struct Block;

  // Free blocks of one class, newest first.
  struct List {
    Block* newest = nullptr;
    Block* oldest = nullptr;
  };

  // These want the lock.
  Block* take_cached(SizeClass wanted, size_t size);
  void put_cached(Block* block);
  void unlink(Block* block);
  Block* oldest_cached() const;
  Block* shrink_cache(size_t most);
  void count_in(size_t bytes);

  Block* fresh(SizeClass wanted, size_t size);
  static Block* from_system(SizeClass wanted);
  static void to_system(Block* block);
  static void all_to_system(Block* chain);
  [[noreturn]] void fail(size_t size) const;

  SpinLock lock_;
  uint64_t clock_ = 0;  // counts frees, to tell which block is older
  std::atomic<size_t> active_{0};
  std::atomic<size_t> cached_{0};
  std::atomic<size_t> peak_{0};
  std::atomic<size_t> memory_limit_;
  std::atomic<size_t> cache_limit_;
  std::array<uint64_t, words> nonempty_{};  // one bit for each class
  std::array<List, SizeClass::count> lists_{};
};

// The one that arrays use; lives until the process ends.
CpuAllocator& cpu_allocator();

}  // namespace mlx::core::cpu
