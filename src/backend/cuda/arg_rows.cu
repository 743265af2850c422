// The position of the first extreme of rows whose elements are neighbours, by
// packs of 16 bytes: first only the extreme itself, for which an element costs
// two instructions; then those threads that met it look for where it was.
#include <algorithm>

#include "backend/cuda/arg_rows.h"
#include "backend/cuda/device/combine.cuh"
#include "backend/cuda/device/row.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/work_split.h"

namespace mlx::core::cuda {

namespace {

// Packs of a thread that are in flight at once.
constexpr int kPacks = 8;
constexpr int kMostThreads = 1024;
constexpr uint32_t kNone = 0xffffffffu;

// NaN are passed over.
template <typename A>
__device__ __forceinline__ A larger_of(A a, A b) {
  if constexpr (std::is_same_v<A, float>) {
    return fmaxf(a, b);
  } else if constexpr (std::is_same_v<A, double>) {
    return fmax(a, b);
  } else {
    return a < b ? b : a;
  }
}

// The order of what is searched for its smallest is turned round.
template <typename A>
__device__ __forceinline__ A key_of(A x, bool largest) {
  if constexpr (std::is_floating_point_v<A>) {
    return largest ? x : -x;
  } else {
    return largest ? x : static_cast<A>(~x);
  }
}

// kPacks packs of each thread, of which `left` elements' are there; others are
// the first one again, so that nothing need branch on them.
template <typename T>
struct SearchStep {
  using A = compute_t<T>;
  static constexpr int N = pack_size_v<T>;
  uint4 packs[kPacks];

  static __device__ __forceinline__ int size() {
    return kPacks * N * static_cast<int>(blockDim.x);
  }
  static __device__ __forceinline__ int place(int k) {
    return (k * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) *
           N;
  }
  __device__ __forceinline__ void load(const T* x, int left) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      int from = place(k) < left ? place(k) : 0;
      packs[k] = *reinterpret_cast<const uint4*>(x + from);
    }
  }
  template <typename F>
  __device__ __forceinline__ void each(bool largest, F&& f) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      Pack<T, N> pack;
      memcpy(&pack, &packs[k], 16);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        f(key_of(to_compute(pack[j]), largest), place(k) + j);
      }
    }
  }
};

// A block a row or part of one (blockIdx.y), up to 128 KiB in flight. What is
// left of less than a pack takes an element a thread.
template <typename T>
__global__ void __launch_bounds__(kMostThreads, 1) search_rows(ArgRows a) {
  using A = compute_t<T>;
  using Step = SearchStep<T>;
  __shared__ A shared[64];
  __shared__ uint32_t first;
  if (threadIdx.x == 0) {
    first = kNone;
  }
  __syncthreads();
  int64_t begin = blockIdx.y * a.n_of_part;
  int64_t n = a.n - begin < a.n_of_part ? a.n - begin : a.n_of_part;
  int64_t whole = n / Step::N * Step::N;
  const T* x = static_cast<const T*>(a.x) + a.kept.at(blockIdx.x) + begin;
  auto left_at = [&](int64_t at) {
    return static_cast<int>(
        whole - at < Step::size() ? whole - at : Step::size());
  };
  A top = extreme<A>(false);
  int64_t where = 0;
  bool has_nan = false;
  for (int64_t at = 0; at < whole && !has_nan; at += Step::size()) {
    Step step;
    step.load(x + at, left_at(at));
    A here = extreme<A>(false);
    step.each(a.largest, [&](A key, int) {
      here = larger_of(here, key);
      has_nan |= is_nan(key);
    });
    if (here > top || has_nan) {
      top = here;
      where = at;
    }
  }
  if (threadIdx.x < n - whole && !has_nan) {
    A key = key_of(to_compute(x[whole + threadIdx.x]), a.largest);
    has_nan = is_nan(key);
    if (key > top || has_nan) {
      top = key;
      where = whole;
    }
  }
  A mine = top;
  if constexpr (std::is_floating_point_v<A>) {
    mine = has_nan ? A(__builtin_nanf("")) : top;
  }
  RowCombiner<A> combine(shared);
  A best = combine(mine, extreme<A>(false), Max());
  if (is_nan(best) ? has_nan : mine == best) {
    uint32_t found = kNone;
    if (where < whole) {
      int left = left_at(where);
      Step step;
      step.load(x + where, left);
      step.each(a.largest, [&](A key, int place) {
        bool is_it = is_nan(best) ? is_nan(key) : key == best;
        auto position = static_cast<uint32_t>(begin + where + place);
        found = is_it && place < left && position < found ? position : found;
      });
    } else if (threadIdx.x < n - whole) {
      found = static_cast<uint32_t>(begin + where + threadIdx.x);
    }
    if (found != kNone) {
      atomicMin(&first, found);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    a.out[static_cast<int64_t>(blockIdx.x) * gridDim.y + blockIdx.y] = first;
  }
}

int64_t packs_of(int64_t n, Dtype dtype) {
  return ceil_div(n * static_cast<int64_t>(dtype.size()), 16);
}

}  // namespace

int64_t arg_row_parts(int64_t rows, int64_t n, Dtype dtype) {
  // Up to twice what is in flight at once, a second launch costs more.
  int64_t most = packs_of(n, dtype) / (2 * kPacks * kMostThreads);
  int64_t wanted = ceil_div(2 * device_threads() / kMostThreads, rows);
  return std::max<int64_t>(1, std::min(most, wanted));
}

void arg_rows(const ArgRows& a, Dtype dtype, Encoder& e) {
  // Many rows want blocks that do not wait for their own reductions.
  int64_t most = a.rows < device_threads() / 256 ? kMostThreads : 256;
  int64_t packs = packs_of(a.n_of_part, dtype);
  int64_t threads = std::min(most, ceil_div(packs, 32) * 32);
  dim3 grid(
      static_cast<unsigned>(a.rows),
      static_cast<unsigned>(ceil_div(a.n, a.n_of_part)));
  visit_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool> && !is_complex_v<T>) {
      e.launch(
          search_rows<T>, grid, dim3(static_cast<unsigned>(threads)), 0, a);
    }
  });
}

}  // namespace mlx::core::cuda
