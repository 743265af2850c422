// A packed row up to 32 KiB stays in registers from its only reading to its
// only writing; a block reads its next row while it works on one. Other rows
// are read twice: a running maximum and sum, then the results.
#include "backend/cuda/device/row.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/row_view.h"
#include "backend/cuda/softmax.h"

namespace mlx::core::cuda {

namespace {

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

// For halves an error of 1e-5 is far below the result's own rounding.
template <typename T>
__device__ __forceinline__ compute_t<T> exponential(compute_t<T> x) {
  if constexpr (is_half_v<T>) {
    return __expf(x);
  } else {
    return exp(x);
  }
}

template <typename A>
__device__ __forceinline__ constexpr A infinity() {
  return A(__builtin_huge_valf());
}
template <typename A>
__device__ __forceinline__ bool is_finite(A x) {
  return x - x == A(0);
}

// Up to 512 threads a row and 64 bytes of the next row in flight for each of
// them. Moves each element in and out once.
template <typename T, int K>
__global__ void __launch_bounds__(kHeldThreads) softmax_held(Rows<T> a) {
  using A = compute_t<T>;
  using Row = HeldRow<T, K>;
  __shared__ A shared[64];
  RowCombiner<A> combine(shared);
  int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y;
  int64_t row = first + threadIdx.y;
  int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  int n = static_cast<int>(a.n);
  Row next;
  if (row < a.rows) {
    next.load(a.x + row * a.pitch, n);
  }
  for (; first < a.rows; first += step, row += step) {
    Row held = next;
    if (row + step < a.rows) {
      next.load(a.x + (row + step) * a.pitch, n);
    }
    int present = row < a.rows ? n : 0;
    A top = -infinity<A>();
    held.each(present, [&](A x, int) { top = x > top ? x : top; });
    top = combine(top, -infinity<A>(), LargerOf());
    // Infinities: inf - inf makes all of softmax NaN, but not a sum.
    A shift = a.only_sum && !is_finite(top) ? A(0) : top;
    A e[K * Row::N];
    A sum = A(0);
    held.each(present, [&](A x, int i) {
      e[i] = exponential<T>(x - shift);
      sum += e[i];
    });
    sum = combine(sum, A(0), SumOf());
    if (a.only_sum) {
      if (row < a.rows && threadIdx.x == 0) {
        a.y[row] = convert<T>(top + log(sum));
      }
    } else {
      A factor = A(1) / sum;
      held.each(present, [&](A, int i) { held.set(i, e[i] * factor); });
      if (row < a.rows) {
        held.store(a.y + row * a.n, n);
      }
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

  template <typename Row>
  __device__ __forceinline__ void add(const Row& held, int n) {
    A larger = top;
    held.each(n, [&](A x, int) { larger = x > larger ? x : larger; });
    if (larger > top) {
      sum *= exponential<T>(top - larger);
      top = larger;
    }
    A shift = is_finite(top) ? top : A(0);
    A part = A(0);
    held.each(n, [&](A x, int) { part += exponential<T>(x - shift); });
    sum += part;
  }
};

// Up to 1024 threads a row, 16 KiB a step.
template <typename T, bool packed>
__global__ void __launch_bounds__(kWalkThreads) softmax_walk(Rows<T> a) {
  using A = compute_t<T>;
  using Row = HeldRow<T, 1, packed>;
  __shared__ A shared[64];
  RowCombiner<A> combine(shared);
  int64_t step = Row::capacity();
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y;
       first < a.rows;
       first += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    int64_t row = first + threadIdx.y;
    int64_t n = row < a.rows ? a.n : 0;
    const T* x = a.x + row * a.pitch;
    Running<T> mine;
    for (int64_t at = 0; at < n; at += step) {
      int m = static_cast<int>(n - at < step ? n - at : step);
      Row held;
      held.load(x + at, m);
      mine.add(held, m);
    }
    A top = combine(mine.top, -infinity<A>(), LargerOf());
    A scale = mine.top == top ? A(1) : exponential<T>(mine.top - top);
    A sum = combine(mine.sum * scale, A(0), SumOf());
    if (a.only_sum) {
      if (n > 0 && threadIdx.x == 0) {
        a.y[row] = convert<T>(top + log(sum));
      }
      continue;
    }
    // As in rows that are held, where inf - inf spoils the sum.
    A factor = is_finite(top) ? A(1) / sum : A(__builtin_nanf(""));
    T* y = a.y + row * a.n;
    for (int64_t at = 0; at < n; at += step) {
      int m = static_cast<int>(n - at < step ? n - at : step);
      Row held;
      held.load(x + at, m);
      held.each(m, [&](A v, int i) {
        held.set(i, exponential<T>(v - top) * factor);
      });
      held.store(y + at, m);
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
      dim3 grid = row_grid(kernel, split, view.rows);
      e.launch(kernel, grid, split.block, 0, rows);
    };
    if (split.packs == 0) {
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
