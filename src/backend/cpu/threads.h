// The CPU thread pool: one fork-join pool for the whole process. The caller
// takes part in its own loop; helpers that wake late simply find nothing left.
//
//   parallel_for(n, grain, [&](size_t begin, size_t end) { ... });
//
// Measured on two cores of an EPYC (Zen 3), two threads: an empty loop 0.06 us;
// a loop in which both threads must arrive 0.4 to 1 us when the helper still
// spins and 20 to 40 us when it sleeps; an empty loop with helpers asleep 3 us.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace mlx::core::cpu {

// Threads that a parallel_for may use, the caller included: the CPUs that the
// process may use, or MLX_CPU_THREADS if that is a positive number, or what
// set_num_threads said last.
int num_threads();

// Replaces the pool by one of n threads, the caller included; 0 goes back to
// the default. Waits for a running parallel_for. Throws std::invalid_argument
// for a negative n and std::runtime_error inside a parallel_for.
void set_num_threads(int n);

// True while the calling thread runs a chunk of a parallel_for.
bool in_parallel();

namespace detail {

using ChunkFn = void (*)(void* context, size_t begin, size_t end);

// n > grain >= 1.
void run_parallel(size_t n, size_t grain, void* context, ChunkFn fn);

}  // namespace detail

// Calls fn(begin, end) for ranges that together cover [0, n) once, on several
// threads at once. Choose grain so that `grain` steps move 32 KiB or take 10
// us.
//
// - Each begin is a multiple of grain, and each chunk but the last is at least
//   grain long. Where the cuts fall differs from run to run: a result that must
//   not depend on them loops over fixed blocks (n = blocks, grain = 1).
// - Runs as one call fn(0, n) on the calling thread when n <= grain, inside
//   another parallel_for, and while another thread is using the pool.
// - The first exception of a chunk ends the loop early (chunks that have begun
//   finish, others never begin) and is rethrown here.
// - No allocation: fn stays where it is and is called through a pointer.
// - In a forked child the pool is made anew when first used. Do not go on with
//   a loop in a child that was forked from inside a chunk.
template <typename F>
void parallel_for(size_t n, size_t grain, F&& fn) {
  if (n == 0) {
    return;
  }
  if (grain == 0) {
    grain = 1;
  }
  if (n <= grain) {
    fn(size_t(0), n);
    return;
  }
  using Fn = std::remove_reference_t<F>;
  detail::run_parallel(
      n,
      grain,
      const_cast<void*>(static_cast<const void*>(std::addressof(fn))),
      [](void* context, size_t begin, size_t end) {
        (*static_cast<Fn*>(context))(begin, end);
      });
}

}  // namespace mlx::core::cpu
