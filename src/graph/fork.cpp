// Counting forks.
#include "graph/fork.h"

#include <pthread.h>

#include <atomic>
#include <stdexcept>

namespace mlx::core::detail {

namespace {

std::atomic<int> generation{0};

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
  generation.fetch_add(1, std::memory_order_relaxed);
});

}  // namespace

int fork_generation() {
  return generation.load(std::memory_order_relaxed);
}

void lost_in_fork() {
  throw std::runtime_error(
      "[eval] the process was forked while this value was being computed; it "
      "is computed in the parent only. Evaluate before the fork.");
}

}  // namespace mlx::core::detail
