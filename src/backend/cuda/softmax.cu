// A packed row up to 32 KiB stays in registers from its only reading to its
// only writing. Other rows are read twice: a running maximum and sum, then the
// results. Few of those are spread over clusters of blocks.
#include <cooperative_groups.h>

#include "backend/cuda/device/row.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/row_view.h"
#include "backend/cuda/softmax.h"

namespace mlx::core::cuda {

namespace {

// Blocks of the cluster that takes a long row, and the most rows that are
// spread so.
constexpr int kSpread = 8;
constexpr int kFewRows = 16;

template <typename T>
struct Rows {
  const T* x;
  int64_t pitch;
  /// Of softmax n elements a row, of log-sum-exp one.
  T* y;
  int64_t rows;
  int64_t n;
  bool only_sum;
};

// For halves an error of 1e-5 is far below the result's own rounding, and
// what is no normal number in float does not show beside a sum of at least 1.
template <typename T>
__device__ __forceinline__ compute_t<T> exponential(compute_t<T> x) {
  if constexpr (is_half_v<T>) {
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
#else
    return std::exp(x);
#endif
  } else {
    return exp(x);
  }
}

template <typename A>
__device__ __forceinline__ constexpr A infinity() {
  return A(__builtin_huge_valf());
}
// NaN are passed over: they spoil the sum.
__device__ __forceinline__ float larger_of(float a, float b) {
  return fmaxf(a, b);
}
__device__ __forceinline__ double larger_of(double a, double b) {
  return fmax(a, b);
}
template <typename A>
__device__ __forceinline__ bool is_finite(A x) {
  return x - x == A(0);
}

// Up to 512 threads a row, 64 bytes of it in flight for each of them: 64 KiB
// and more on a processor. Moves each element in and out once.
template <typename T, int K>
__global__ void __maxnreg__(kHeldRegisters) softmax_held(Rows<T> a) {
  using A = compute_t<T>;
  constexpr int N = pack_size_v<T>;
  using Row = HeldRow<T, K>;
  __shared__ A shared[64];
  RowCombiner<A> combine(shared);
  int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  int n = static_cast<int>(a.n);
  Row held;
  held.fill(-infinity<A>());
  if (row < a.rows) {
    held.load(a.x + row * a.pitch, n);
  }
  A e[K][N];
  A top = -infinity<A>();
#pragma unroll
  for (int k = 0; k < K; ++k) {
    held.packs[k].split(e[k]);
  }
#pragma unroll
  for (int i = 0; i < K * N; ++i) {
    top = larger_of(top, e[i / N][i % N]);
  }
  top = combine(top, -infinity<A>(), LargerOf());
  // Infinities: inf - inf makes all of softmax NaN, but not a sum.
  A shift = a.only_sum && !is_finite(top) ? A(0) : top;
  A sum = A(0);
#pragma unroll
  for (int i = 0; i < K * N; ++i) {
    A& x = e[i / N][i % N];
    x = exponential<T>(x - shift);
    sum += x;
  }
  sum = combine(sum, A(0), SumOf());
  if (a.only_sum) {
    if (row < a.rows && threadIdx.x == 0) {
      a.y[row] = convert<T>(top + log(sum));
    }
    return;
  }
  A factor = A(1) / sum;
  T* y = a.y + row * a.n;
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      e[k][i] *= factor;
    }
    if (Row::place(k) < n && row < a.rows) {
      RowPack<T> pack;
      pack.join(e[k]);
      pack.store(y + Row::place(k));
    }
  }
}

// The largest element and the sum of exp(x - largest) of a thread's elements
// so far; of exp(x) where the largest is infinite.
template <typename T>
struct Running {
  using A = compute_t<T>;
  A top = -infinity<A>();
  A sum = A(0);

  // Absent elements are -inf.
  template <int N>
  __device__ __forceinline__ void add(const A (&values)[N]) {
    A larger = top;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      larger = larger_of(larger, values[i]);
    }
    if (larger > top) {
      sum *= exponential<T>(top - larger);
      top = larger;
    }
    A shift = is_finite(top) ? top : A(0);
    A part = A(0);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      part += exponential<T>(values[i] - shift);
    }
    sum += part;
  }
};

// Up to 1024 threads a row, 16 KiB a step.
template <typename T, bool packed>
__global__ void __launch_bounds__(kWalkThreads) softmax_walk(Rows<T> a) {
  using A = compute_t<T>;
  using Row = RowStep<T, packed>;
  __shared__ A shared[64];
  RowCombiner<A> combine(shared);
  int64_t step = Row::size();
  int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  int64_t n = row < a.rows ? a.n : 0;
  const T* x = a.x + row * a.pitch;
  Running<T> mine;
  for (int64_t at = 0; at < n; at += step) {
    int m = static_cast<int>(n - at < step ? n - at : step);
    Row held;
    held.load(x + at, m, -infinity<A>());
    mine.add(held.values);
  }
  A top = combine(mine.top, -infinity<A>(), LargerOf());
  A scale = mine.top == top ? A(1) : exponential<T>(mine.top - top);
  A sum = combine(mine.sum * scale, A(0), SumOf());
  if (a.only_sum) {
    if (n > 0 && threadIdx.x == 0) {
      a.y[row] = convert<T>(top + log(sum));
    }
    return;
  }
  // As in rows that are held, where inf - inf spoils the sum.
  A factor = is_finite(top) ? A(1) / sum : A(__builtin_nanf(""));
  T* y = a.y + row * a.n;
  for (int64_t at = 0; at < n; at += step) {
    int m = static_cast<int>(n - at < step ? n - at : step);
    Row held;
    held.load(x + at, m, A(0));
#pragma unroll
    for (A& v : held.values) {
      v = exponential<T>(v - top) * factor;
    }
    held.store(y + at, m);
  }
}

// A cluster of eight blocks a row, so that a row of a vocabulary has the
// processing and the bandwidth of eight processors; 32 KiB a block in flight,
// 256 KiB a row. What was read last is still in registers when results are
// written, which goes backwards.
template <typename T>
__global__ void __cluster_dims__(kSpread, 1, 1)
    __launch_bounds__(kHeldThreads, 1) softmax_spread(Rows<T> a) {
  using A = compute_t<T>;
  constexpr int N = pack_size_v<T>;
  constexpr int K = 4;
  using Row = HeldRow<T, K>;
  __shared__ A shared[64];
  __shared__ A of_block[2];
  RowCombiner<A> combine(shared);
  auto cluster = cooperative_groups::this_cluster();
  int blocks = static_cast<int>(cluster.num_blocks());
  int64_t share = (a.n / N + blocks - 1) / blocks * N;
  int64_t begin = cluster.block_rank() * share;
  int64_t n = a.n - begin < share ? a.n - begin : share;
  int64_t row = blockIdx.x / kSpread;
  const T* x = a.x + row * a.pitch + begin;
  T* y = a.y + row * a.n + begin;
  int64_t step = static_cast<int64_t>(K) * N * blockDim.x;
  auto left_at = [&](int64_t at) {
    return static_cast<int>(n - at < step ? n - at : step);
  };
  Row held;
  Running<T> mine;
  int64_t last = 0;
  for (int64_t at = 0; at < n; at += step) {
    held.fill(-infinity<A>());
    held.load(x + at, left_at(at));
#pragma unroll
    for (int k = 0; k < K; ++k) {
      A values[N];
      held.packs[k].split(values);
      mine.add(values);
    }
    last = at;
  }
  A top = combine(mine.top, -infinity<A>(), LargerOf());
  A scale = mine.top == top ? A(1) : exponential<T>(mine.top - top);
  A sum = combine(mine.sum * scale, A(0), SumOf());
  if (threadIdx.x == 0) {
    of_block[0] = top;
    of_block[1] = sum;
  }
  cluster.sync();
  for (int i = 0; i < blocks; ++i) {
    top = larger_of(top, cluster.map_shared_rank(of_block, i)[0]);
  }
  sum = A(0);
  for (int i = 0; i < blocks; ++i) {
    const A* other = cluster.map_shared_rank(of_block, i);
    scale = other[0] == top ? A(1) : exponential<T>(other[0] - top);
    sum += other[1] * scale;
  }
  // Nobody's shared memory goes while others read it.
  cluster.sync();
  if (a.only_sum) {
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
      a.y[row] = convert<T>(top + log(sum));
    }
    return;
  }
  // As in rows that are held, where inf - inf spoils the sum.
  A factor = is_finite(top) ? A(1) / sum : A(__builtin_nanf(""));
  for (int64_t at = last; at >= 0; at -= step) {
    int left = left_at(at);
    if (at != last) {
      held.load(x + at, left);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      A values[N];
      held.packs[k].split(values);
#pragma unroll
      for (A& v : values) {
        v = exponential<T>(v - top) * factor;
      }
      if (Row::place(k) < left) {
        RowPack<T> pack;
        pack.join(values);
        pack.store(y + at + Row::place(k));
      }
    }
  }
}

void softmax_rows(const RowView& view, array& out, bool only_sum, Encoder& e) {
  visit_real_float(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = e.in<T>(view.data);
    bool packed = view.is_packed(x);
    RowSplit split = row_split(view.rows, view.n, sizeof(T), packed);
    Rows<T> rows{x, view.pitch, e.out<T>(out), view.rows, view.n, only_sum};
    auto launch = [&](auto* kernel) {
      e.launch(kernel, split.grid(view.rows), split.block, 0, rows);
    };
    if (split.packs == 0 && packed && view.rows <= kFewRows) {
      dim3 grid(static_cast<unsigned>(view.rows * kSpread));
      e.launch(softmax_spread<T>, grid, dim3(kHeldThreads), 0, rows);
    } else if (split.packs == 0) {
      launch(packed ? &softmax_walk<T, true> : &softmax_walk<T, false>);
    } else {
      visit_packs(
          split.packs, [&](auto packs) { launch(&softmax_held<T, packs()>); });
    }
  });
}

}  // namespace

void softmax(const Softmax&, const array& x, array& out, Encoder& e) {
  if (out.size() == 0) {
    e.allocate(out);
    return;
  }
  if (!x.flags().row_contiguous || !e.donate(x, out)) {
    e.allocate(out);
  }
  softmax_rows(row_view(x, e), out, false, e);
}

void logsumexp(const LogSumExp&, const array& x, array& out, Encoder& e) {
  e.allocate(out);
  if (x.size() == 0) {
    return;
  }
  softmax_rows(row_view(x, e), out, true, e);
}

}  // namespace mlx::core::cuda
