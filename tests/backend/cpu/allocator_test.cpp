// The caching allocator: size classes, alignment, reuse, limits, counters under
// many threads, memory of the caller, forked children, and the public faces.
#include "backend/cpu/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mlx/allocator.h"
#include "mlx/memory.h"

namespace mlx::core::cpu {
namespace {

using allocator::Buffer;

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;
constexpr size_t no_limit = size_t(1) << 60;

TEST(SizeClassTest, TightAndOrdered) {
  int last_index = -1;
  size_t last_bytes = 0;
  for (size_t size = 1; size < SizeClass::max_bytes; size += size / 97 + 1) {
    auto c = SizeClass::of(size);
    ASSERT_GE(c.bytes, size);
    ASSERT_EQ(c.bytes % 64, 0u);
    ASSERT_GE(c.index, last_index);
    ASSERT_LT(c.index, SizeClass::count);
    ASSERT_EQ(c.index == last_index, c.bytes == last_bytes) << size;
    if (size > 512) {
      double waste = double(c.bytes - size) / double(size);
      ASSERT_LE(waste, size > 2 * MiB ? 0.0625 : 0.125) << size;
    }
    // A block's own size leads back to its class.
    ASSERT_EQ(SizeClass::of(c.bytes).index, c.index);
    last_index = c.index;
    last_bytes = c.bytes;
  }
  EXPECT_EQ(SizeClass::of(0).bytes, 64u);
  EXPECT_EQ(SizeClass::of(SizeClass::max_bytes).index, SizeClass::count - 1);
  for (size_t exact : {64, 512, 4096, 65536, 1 << 20, 2 << 20, 3 << 20}) {
    EXPECT_EQ(SizeClass::of(exact).bytes, exact);
  }
}

TEST(CpuAllocatorTest, AlignmentAndUse) {
  CpuAllocator a(no_limit, no_limit);
  for (size_t size : {0, 1, 63, 64, 65, 1000, 4096, 100000}) {
    for (size_t scale : {1, 17, 256}) {
      Buffer b = a.malloc(size * scale);
      auto address = reinterpret_cast<uintptr_t>(b.raw_ptr());
      size_t need = size * scale >= 2 * MiB ? 2 * MiB
                    : size * scale > MiB    ? 128
                                            : 64;
      ASSERT_NE(address, 0u);
      ASSERT_EQ(address % need, 0u) << size * scale;
      ASSERT_GE(a.size(b), size * scale);
      std::memset(b.raw_ptr(), 0xab, a.size(b));
      a.free(b);
    }
  }
}

TEST(CpuAllocatorTest, ZeroSizeIsABuffer) {
  CpuAllocator a(no_limit, no_limit);
  Buffer x = a.malloc(0);
  Buffer y = a.malloc(0);
  EXPECT_NE(x.raw_ptr(), nullptr);
  EXPECT_NE(x.raw_ptr(), y.raw_ptr());
  a.free(x);
  a.free(y);
  EXPECT_EQ(a.active_memory(), 0u);
}

TEST(CpuAllocatorTest, NullBuffer) {
  CpuAllocator a(no_limit, no_limit);
  Buffer null(nullptr);
  EXPECT_EQ(null.raw_ptr(), nullptr);
  EXPECT_EQ(a.size(null), 0u);
  a.free(null);
  a.release(null);
}

TEST(CpuAllocatorTest, ReusesTheNewestOfTheSameSize) {
  CpuAllocator a(no_limit, no_limit);
  for (size_t size : {100 * size_t(1), 10 * KiB, MiB + KiB, 5 * MiB}) {
    Buffer x = a.malloc(size);
    Buffer y = a.malloc(size);
    void* x_data = x.raw_ptr();
    void* y_data = y.raw_ptr();
    EXPECT_NE(x_data, y_data);
    a.free(x);
    a.free(y);
    Buffer first = a.malloc(size);
    Buffer second = a.malloc(size);
    EXPECT_EQ(first.raw_ptr(), y_data);
    EXPECT_EQ(second.raw_ptr(), x_data);
    a.free(first);
    a.free(second);
  }
}

TEST(CpuAllocatorTest, BestFitWithinAQuarter) {
  CpuAllocator a(no_limit, no_limit);
  for (size_t unit : {KiB, MiB}) {
    Buffer small = a.malloc(100 * unit);
    Buffer large = a.malloc(120 * unit);
    void* small_data = small.raw_ptr();
    void* large_data = large.raw_ptr();
    size_t large_size = a.size(large);
    a.free(small);
    a.free(large);
    Buffer best = a.malloc(99 * unit);
    EXPECT_EQ(best.raw_ptr(), small_data);
    Buffer next = a.malloc(99 * unit);
    EXPECT_EQ(next.raw_ptr(), large_data);
    EXPECT_EQ(a.size(next), large_size);
    EXPECT_EQ(a.active_memory(), a.size(best) + a.size(next));
    a.free(next);
    Buffer other = a.malloc(80 * unit);  // 120 is more than 80 + a quarter
    EXPECT_NE(other.raw_ptr(), large_data);
    a.free(other);
    a.free(best);
    a.clear_cache();
  }
}

TEST(CpuAllocatorTest, CountersFollowEachStep) {
  CpuAllocator a(no_limit, no_limit);
  Buffer x = a.malloc(4096);
  EXPECT_EQ(a.active_memory(), 4096u);
  EXPECT_EQ(a.peak_memory(), 4096u);
  EXPECT_EQ(a.cache_memory(), 0u);
  Buffer y = a.malloc(8 * MiB);
  EXPECT_EQ(a.active_memory(), 4096 + 8 * MiB);
  a.free(y);
  EXPECT_EQ(a.active_memory(), 4096u);
  EXPECT_EQ(a.cache_memory(), 8 * MiB);
  EXPECT_EQ(a.peak_memory(), 4096 + 8 * MiB);
  a.reset_peak_memory();
  EXPECT_EQ(a.peak_memory(), 0u);
  Buffer z = a.malloc(8 * MiB);
  EXPECT_EQ(a.cache_memory(), 0u);
  EXPECT_EQ(a.peak_memory(), 4096 + 8 * MiB);
  a.free(x);
  a.free(z);
  EXPECT_EQ(a.active_memory(), 0u);
  EXPECT_EQ(a.cache_memory(), 4096 + 8 * MiB);
  a.clear_cache();
  EXPECT_EQ(a.cache_memory(), 0u);
}

TEST(CpuAllocatorTest, CacheLimitDropsTheOldest) {
  CpuAllocator a(no_limit, 3 * MiB);
  Buffer old = a.malloc(MiB);
  Buffer middle = a.malloc(512 * KiB);
  Buffer young = a.malloc(2 * MiB);
  a.free(old);
  a.free(middle);
  EXPECT_EQ(a.cache_memory(), MiB + 512 * KiB);
  a.free(young);  // 3.5 MiB: the oldest, of 1 MiB, leaves
  EXPECT_EQ(a.cache_memory(), 2 * MiB + 512 * KiB);

  Buffer too_large = a.malloc(4 * MiB);
  a.free(too_large);  // more than the whole cache may hold: never kept
  EXPECT_EQ(a.cache_memory(), 2 * MiB + 512 * KiB);

  EXPECT_EQ(a.set_cache_limit(MiB), 3 * MiB);
  EXPECT_EQ(a.cache_memory(), 0u);  // the older, smaller one had to go first
  EXPECT_EQ(a.set_cache_limit(0), MiB);
  a.free(a.malloc(100));
  EXPECT_EQ(a.cache_memory(), 0u);
  EXPECT_EQ(a.active_memory(), 0u);
}

TEST(CpuAllocatorTest, MemoryLimitFreesTheCacheAndGoesOn) {
  CpuAllocator a(10 * MiB, no_limit);
  Buffer kept = a.malloc(4 * MiB);
  Buffer first = a.malloc(2 * MiB);
  Buffer second = a.malloc(3 * MiB);
  a.free(first);
  a.free(second);
  EXPECT_EQ(a.cache_memory(), 5 * MiB);
  // 4 in use, 5 cached, 2.5 more: 1.5 too many, so the oldest block leaves.
  Buffer more = a.malloc(2 * MiB + 512 * KiB);
  EXPECT_NE(more.raw_ptr(), nullptr);
  EXPECT_LE(a.active_memory() + a.cache_memory(), 10 * MiB);
  Buffer beyond = a.malloc(20 * MiB);
  EXPECT_EQ(a.cache_memory(), 0u);
  EXPECT_GT(a.active_memory(), 10 * MiB);
  EXPECT_EQ(a.set_memory_limit(no_limit), 10 * MiB);
  EXPECT_EQ(a.memory_limit(), no_limit);
  for (Buffer b : {kept, more, beyond}) {
    a.free(b);
  }
}

TEST(CpuAllocatorTest, ImpossibleSizesAreErrors) {
  CpuAllocator a(no_limit, no_limit);
  Buffer held = a.malloc(4096);
  a.free(a.malloc(640));
  for (size_t size : {SIZE_MAX, SIZE_MAX / 2, size_t(1) << 47}) {
    try {
      a.malloc(size);
      FAIL() << size;
    } catch (const std::runtime_error& error) {
      std::string text = error.what();
      EXPECT_EQ(text.rfind("[malloc] ", 0), 0u) << text;
      EXPECT_NE(text.find(std::to_string(size) + " bytes"), text.npos) << text;
      EXPECT_NE(text.find("4096 in use"), text.npos) << text;
    }
  }
  EXPECT_EQ(a.active_memory(), 4096u);
  a.free(held);
  EXPECT_EQ(a.active_memory(), 0u);
}

TEST(CpuAllocatorTest, MemoryOfTheCallerStaysTheCallers) {
  CpuAllocator a(no_limit, no_limit);
  std::vector<float> data(10, 1.5f);
  Buffer b = a.make_buffer(data.data(), 40);
  EXPECT_EQ(b.raw_ptr(), data.data());
  EXPECT_EQ(a.size(b), 40u);
  EXPECT_EQ(a.active_memory(), 0u);
  a.release(b);
  Buffer freed = a.make_buffer(data.data() + 1, 36);
  a.free(freed);
  Buffer owned = a.malloc(64);
  a.release(owned);
  EXPECT_EQ(a.active_memory(), 0u);
  EXPECT_EQ(a.cache_memory(), 64u);
  EXPECT_EQ(data[9], 1.5f);
}

// One thread of a random run: blocks keep what was written to them.
void random_run(CpuAllocator& a, unsigned seed, std::atomic<int>& wrong) {
  std::mt19937 random(seed);
  std::vector<std::pair<Buffer, size_t>> held;
  for (int step = 0; step < 3000; ++step) {
    if (held.size() < 20 || random() % 2 == 0) {
      size_t most = size_t(1) << (random() % 20);
      size_t size = random() % most;
      if (random() % 500 == 0) {
        size = 3 * MiB;
      }
      Buffer b = a.malloc(size);
      auto* data = static_cast<unsigned char*>(b.raw_ptr());
      data[0] = static_cast<unsigned char>(seed);
      data[a.size(b) - 1] = static_cast<unsigned char>(step);
      held.emplace_back(b, step);
    } else {
      size_t which = random() % held.size();
      auto [b, made_at] = held[which];
      auto* data = static_cast<unsigned char*>(b.raw_ptr());
      bool intact =
          data[a.size(b) - 1] == static_cast<unsigned char>(made_at) &&
          (a.size(b) == 1 || data[0] == static_cast<unsigned char>(seed));
      wrong += !intact;
      a.free(b);
      held[which] = held.back();
      held.pop_back();
    }
    if (random() % 1000 == 0) {
      a.clear_cache();
    }
  }
  for (auto& [b, made_at] : held) {
    a.free(b);
  }
}

TEST(CpuAllocatorTest, CountersAreExactAfterManyThreads) {
  CpuAllocator a(no_limit, 4 * MiB);
  std::atomic<int> wrong{0};
  Buffer kept = a.malloc(12345);
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    threads.emplace_back([&, seed] { random_run(a, seed, wrong); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(a.active_memory(), a.size(kept));
  EXPECT_GE(a.peak_memory(), a.active_memory());
  EXPECT_LE(a.cache_memory(), 4 * MiB);
  a.clear_cache();
  EXPECT_EQ(a.cache_memory(), 0u);
  a.free(kept);
  EXPECT_EQ(a.active_memory(), 0u);
}

// Blocks that one thread makes and another frees.
TEST(CpuAllocatorTest, BuffersMoveBetweenThreads) {
  CpuAllocator a(no_limit, no_limit);
  constexpr int count = 2000;
  std::vector<std::atomic<void*>> slots(count);
  std::thread maker([&] {
    for (auto& slot : slots) {
      Buffer b = a.malloc(256);
      *static_cast<int*>(b.raw_ptr()) = 7;
      slot.store(b.ptr(), std::memory_order_release);
    }
  });
  int sum = 0;
  for (auto& slot : slots) {
    void* ptr = nullptr;
    while ((ptr = slot.load(std::memory_order_acquire)) == nullptr) {
      std::this_thread::yield();
    }
    Buffer b(ptr);
    sum += *static_cast<int*>(b.raw_ptr());
    a.free(b);
  }
  maker.join();
  EXPECT_EQ(sum, 7 * count);
  EXPECT_EQ(a.active_memory(), 0u);
}

TEST(CpuAllocatorTest, ForkWhileOtherThreadsAllocate) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      allocator::free(allocator::malloc(128));
    }
  });
  for (int round = 0; round < 20; ++round) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a child that hangs is ended
      Buffer b = allocator::malloc(128);
      allocator::free(b);
      std::_Exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

TEST(MemoryTest, PublicFunctions) {
  size_t before = get_active_memory();
  Buffer b = allocator::malloc(32 * KiB);
  EXPECT_EQ(get_active_memory(), before + 32 * KiB);
  EXPECT_GE(get_peak_memory(), before + 32 * KiB);
  EXPECT_GE(allocator::allocator().size(b), 32 * KiB);
  allocator::free(b);
  EXPECT_EQ(get_active_memory(), before);
  EXPECT_GE(get_cache_memory(), 32 * KiB);
  clear_cache();
  EXPECT_EQ(get_cache_memory(), 0u);
  reset_peak_memory();
  EXPECT_EQ(get_peak_memory(), 0u);

  size_t limit = get_memory_limit();
  EXPECT_GT(limit, 16 * MiB);
  EXPECT_EQ(set_memory_limit(123456), limit);
  EXPECT_EQ(get_memory_limit(), 123456u);
  EXPECT_EQ(set_memory_limit(limit), 123456u);
  size_t cache = set_cache_limit(0);
  EXPECT_GT(cache, 4 * MiB);
  EXPECT_LT(cache, limit);
  EXPECT_EQ(set_cache_limit(cache), 0u);
  EXPECT_EQ(set_wired_limit(5), 0u);
}

TEST(MemoryTest, AlienBuffers) {
  float value = 2.0f;
  EXPECT_TRUE(allocator::can_reuse_alien_buffer(&value));
  Buffer b = allocator::make_buffer(&value, sizeof(value));
  EXPECT_EQ(*static_cast<float*>(b.raw_ptr()), 2.0f);
  allocator::release(b);
}

}  // namespace
}  // namespace mlx::core::cpu
