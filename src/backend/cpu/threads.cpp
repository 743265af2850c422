// One word of state runs the pool: how many helpers may still join the current
// loop (open), how many are in it (active), and two flags. The caller publishes
// a loop by setting `open`; helpers join by moving one from open to active;
// whoever finds no chunk left sets open to 0; the caller leaves when active is
// 0. So a helper that the system did not schedule in time is never waited for.
// Waiting is a bounded spin (a hand-off then costs about 1 us), then a futex.
#include "backend/cpu/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/host.h"
#include "backend/cpu/thread_tools.h"

namespace mlx::core::cpu {
namespace {

constexpr int max_threads = 4096;

// The state word.
constexpr uint32_t active_mask = 0x7fff;  // helpers inside the loop
constexpr uint32_t caller_sleeps = 1u << 15;
constexpr uint32_t open_shift = 16;  // helpers that may still join
constexpr uint32_t open_mask = 0x7fffu << open_shift;
constexpr uint32_t stop_bit = 1u << 31;

// Two kinds of sleepers on one word.
constexpr uint32_t helper_queue = 1;
constexpr uint32_t caller_queue = 2;

thread_local bool inside_loop = false;

class Pool {
 public:
  // One thread is the caller's.
  explicit Pool(int threads);
  ~Pool();

  void run(size_t n, size_t grain, void* context, detail::ChunkFn fn);

 private:
  void helper();
  bool join();
  void work();
  void close() { state_.fetch_and(~open_mask, std::memory_order_relaxed); }
  void wake_helpers(int most);
  void wait_for_active();

  alignas(64) std::atomic<uint32_t> state_{0};
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<size_t> next_{0};
  // The loop: written by the caller before it sets `open`.
  alignas(64) size_t n_ = 0;
  size_t grain_ = 1;
  size_t guided_ = 1;  // a chunk is 1 / guided_ of what is left
  void* context_ = nullptr;
  detail::ChunkFn fn_ = nullptr;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::vector<std::thread> helpers_;
};

Pool::Pool(int threads) {
  try {
    for (int i = 1; i < threads; ++i) {
      helpers_.push_back(
          start_thread("mlx-cpu-" + std::to_string(i), [this] { helper(); }));
    }
  } catch (const std::system_error&) {
    // The system has no more threads to give: go on with those it gave.
  }
}

Pool::~Pool() {
  state_.store(stop_bit, std::memory_order_seq_cst);
  futex_wake(state_, INT_MAX, helper_queue);
  for (auto& thread : helpers_) {
    thread.join();
  }
}

void Pool::run(size_t n, size_t grain, void* context, detail::ChunkFn fn) {
  n_ = n;
  grain_ = grain;
  context_ = context;
  fn_ = fn;
  size_t helpers = std::min((n - 1) / grain, helpers_.size());
  guided_ = 2 * (helpers + 1);
  next_.store(0, std::memory_order_relaxed);
  // Sequentially consistent with sleepers_: either the store is seen by a
  // helper that is about to sleep, or the helper is seen here.
  state_.store(uint32_t(helpers) << open_shift, std::memory_order_seq_cst);
  // A few are woken here and wake the others as they join.
  wake_helpers(static_cast<int>(std::min<size_t>(helpers, 4)));

  inside_loop = true;
  work();
  inside_loop = false;
  close();
  wait_for_active();
  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

// Takes chunks until none is left. Guided: large chunks first, down to grain.
void Pool::work() {
  size_t begin = next_.load(std::memory_order_relaxed);
  while (begin < n_) {
    size_t share = (n_ - begin) / guided_ / grain_ * grain_;
    size_t length = std::min(std::max(share, grain_), n_ - begin);
    if (!next_.compare_exchange_weak(
            begin, begin + length, std::memory_order_relaxed)) {
      continue;
    }
    try {
      fn_(context_, begin, begin + length);
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) {
        error_ = std::current_exception();
      }
      next_.store(n_, std::memory_order_relaxed);
      return;
    }
    begin = next_.load(std::memory_order_relaxed);
  }
}

void Pool::wake_helpers(int most) {
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    futex_wake(state_, most, helper_queue);
  }
}

// Release by the last helper's leave, acquire here: what chunks wrote is seen.
void Pool::wait_for_active() {
  auto done = [this] {
    return (state_.load(std::memory_order_acquire) & active_mask) == 0;
  };
  if (spin(done)) {
    return;
  }
  uint32_t s = state_.fetch_or(caller_sleeps, std::memory_order_acq_rel);
  s |= caller_sleeps;
  while (s & active_mask) {
    futex_wait(state_, s, caller_queue);
    s = state_.load(std::memory_order_acquire);
  }
  state_.store(0, std::memory_order_relaxed);
}

bool Pool::join() {
  uint32_t s = state_.load(std::memory_order_relaxed);
  while (s & open_mask) {
    if (state_.compare_exchange_weak(
            s, s - (1u << open_shift) + 1, std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void Pool::helper() {
  inside_loop = true;  // what runs here never starts a loop of its own
  auto called = [this] {
    return (state_.load(std::memory_order_relaxed) & (open_mask | stop_bit)) !=
           0;
  };
  while (true) {
    if (!spin(called)) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      uint32_t s = state_.load(std::memory_order_seq_cst);
      if ((s & (open_mask | stop_bit)) == 0) {
        futex_wait(state_, s, helper_queue);
      }
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    if (state_.load(std::memory_order_relaxed) & stop_bit) {
      return;
    }
    if (!join()) {
      continue;
    }
    if (state_.load(std::memory_order_relaxed) & open_mask) {
      wake_helpers(2);
    }
    work();
    close();
    uint32_t s = state_.fetch_sub(1, std::memory_order_release);
    if ((s & caller_sleeps) && (s & active_mask) == 1) {
      futex_wake(state_, 1, caller_queue);
    }
  }
}

// The one pool. Whoever holds `busy` owns everything else here.
struct Shared {
  std::atomic<bool> busy{false};
  std::atomic<int> threads{0};  // 0: not known yet
  Pool* pool = nullptr;
  Pool* parents_pool = nullptr;  // in a forked child: its threads are not here

  ~Shared();
};

constinit Shared shared;

bool try_lease() {
  return !shared.busy.load(std::memory_order_relaxed) &&
         !shared.busy.exchange(true, std::memory_order_acquire);
}

void give_back() {
  shared.busy.store(false, std::memory_order_release);
}

void lease() {
  while (!try_lease()) {
    sched_yield();
  }
}

// Keeps the lease for good: loops that threads start while the process ends
// run serially.
Shared::~Shared() {
  if (!inside_loop) {
    lease();
    delete pool;
    pool = nullptr;
  }
}

void in_forked_child() {
  shared.parents_pool = shared.pool;
  shared.pool = nullptr;
  give_back();
}

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, in_forked_child);

int default_threads() {
  if (const char* text = std::getenv("MLX_CPU_THREADS")) {
    char* end = nullptr;
    long n = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && n > 0) {
      return static_cast<int>(std::min<long>(n, max_threads));
    }
  }
  return std::min(available_cpus(), max_threads);
}

}  // namespace

int num_threads() {
  int n = shared.threads.load(std::memory_order_relaxed);
  if (n == 0) {
    int found = default_threads();
    // A set_num_threads of another thread goes first.
    n = shared.threads.compare_exchange_strong(n, found) ? found : n;
  }
  return n;
}

void set_num_threads(int n) {
  if (n < 0) {
    throw std::invalid_argument(
        "[set_num_threads] bad number of threads: " + std::to_string(n) +
        ". Expected at least 0.");
  }
  if (inside_loop) {
    throw std::runtime_error(
        "[set_num_threads] called inside a parallel loop. Call it outside.");
  }
  lease();
  delete shared.pool;
  shared.pool = nullptr;
  shared.threads = n == 0 ? default_threads() : std::min(n, max_threads);
  give_back();
}

bool in_parallel() {
  return inside_loop;
}

void detail::run_parallel(size_t n, size_t grain, void* context, ChunkFn fn) {
  if (inside_loop || num_threads() == 1 || !try_lease()) {
    fn(context, 0, n);
    return;
  }
  struct GiveBack {
    ~GiveBack() { give_back(); }
  } at_end;
  if (shared.pool == nullptr) {
    shared.pool = new Pool(num_threads());
  }
  shared.pool->run(n, grain, context, fn);
}

}  // namespace mlx::core::cpu
