// Memory for blocks of 64 KiB to 1 MiB, cut from regions of huge pages: work on
// hundreds of such arrays spends its time in looking up addresses when each has
// small pages of its own (x + 1.5 for 1000 arrays of 330 KB 50 instead of 58
// ms, Zen 3).
#pragma once

#include <cstddef>

#include "backend/cpu/spin_lock.h"

namespace mlx::core::cpu {

// Anonymous memory aligned to `alignment`, a multiple of a huge page, with huge
// pages asked for; null when the system refuses.
void* map_aligned(size_t bytes, size_t alignment);

class Arena {
 public:
  static constexpr size_t least = size_t(64) << 10;
  static constexpr size_t most = size_t(1) << 20;

  // Aligned to 64 bytes; null when the system refuses. `bytes` is at most
  // `most` and a little.
  void* take(size_t bytes);
  // The memory goes back to the system, the address with the whole region.
  void give_back(void* piece, size_t bytes);

  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

 private:
  struct Region;

  void* cut(size_t bytes);

  SpinLock lock_;
  Region* current_ = nullptr;
};

}  // namespace mlx::core::cpu
