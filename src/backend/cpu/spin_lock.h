// A lock for critical sections of a few nanoseconds: one atomic exchange to
// take it, a plain store to leave it. Waiters read, so that the line stays
// shared, and yield, for the case that the holder was put off its core.
#pragma once

#include <sched.h>

#include <atomic>

#include "backend/cpu/thread_tools.h"

namespace mlx::core::cpu {

class SpinLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) {
      for (int spins = 0; taken_.load(std::memory_order_relaxed); ++spins) {
        if (spins < 64) {
          pause();
        } else {
          sched_yield();
        }
      }
    }
  }

  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace mlx::core::cpu
