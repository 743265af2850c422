// What our threads are made of: bounded spinning, sleeping on a word (futex),
// and starting a thread that leaves signals to the program.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace mlx::core::cpu {

// Tells the core that this is a spin: saves power, frees a sibling thread.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps while `word` is `expected`; may wake without reason. Threads that give
// different bits of `who` wait for different things on the same word.
void futex_wait(
    std::atomic<uint32_t>& word, uint32_t expected, uint32_t who = ~0u);
void futex_wake(std::atomic<uint32_t>& word, int count, uint32_t who = ~0u);

// A named thread with all signals blocked but those of its own faults. Throws
// std::system_error when the system has no more threads to give.
std::thread start_thread(const std::string& name, std::function<void()> run);

// About what it takes to wake a sleeping thread (20 to 40 us): a longer spin
// costs more than the sleep it avoids.
constexpr auto spin_time = std::chrono::microseconds(200);

// After this a spin also yields: with more runnable threads than cores the one
// that is waited for may need this very core.
constexpr auto spin_before_yield = std::chrono::microseconds(4);

// Spins until done() or the time is spent; says whether it is done.
template <typename Done>
bool spin(Done done) {
  if (done()) {
    return true;
  }
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  while (true) {
    for (int i = 0; i < 16; ++i) {
      pause();
      if (done()) {
        return true;
      }
    }
    auto spent = Clock::now() - start;
    if (spent > spin_time) {
      return false;
    }
    if (spent > spin_before_yield) {
      sched_yield();
    }
  }
}

}  // namespace mlx::core::cpu
