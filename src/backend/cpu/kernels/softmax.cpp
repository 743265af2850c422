// A row that fits the cache is read once from memory: maximum, then
// exponentials and their sum, then the scaling, all in cache. Longer rows keep
// a running maximum and rescale the sum when it grows, block by block: two
// readings of memory instead of three.
#include "backend/cpu/kernels/softmax.h"

#include "backend/cpu/simd/math.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

// Elements of a row held as accumulators on the stack; 32 KiB of float32.
constexpr size_t kBlock = 8192;
// Rows of float32 and float64 up to this length are computed in the output.
constexpr size_t kInPlace = 32768;

template <typename A, typename T>
MLX_INLINE Vec<A> get(const T* p) {
  return load_as<A>(p);
}
template <typename A, typename T>
MLX_INLINE Vec<A> get(const T* p, size_t n, A fill) {
  A lanes[Vec<A>::size];
  load_partial_as<A>(p, n).store(lanes);
  for (size_t i = n; i < size_t(Vec<A>::size); ++i) {
    lanes[i] = fill;
  }
  return Vec<A>::load(lanes);
}

template <typename A>
constexpr A minus_infinity() {
  return A(-__builtin_inff());
}

// NaNs may be lost here: their exponentials are NaN all the same.
template <typename A, typename T>
MLX_INLINE A row_max(const T* x, size_t n) {
  using V = Vec<A>;
  V m[4];
  for (V& v : m) {
    v = V(minus_infinity<A>());
  }
  size_t i = 0;
  for (; i + 4 * V::size <= n; i += 4 * V::size) {
    for (int k = 0; k < 4; ++k) {
      m[k] = max_native(get<A>(x + i + k * V::size), m[k]);
    }
  }
  for (; i + V::size <= n; i += V::size) {
    m[0] = max_native(get<A>(x + i), m[0]);
  }
  if (i < n) {
    m[0] = max_native(get<A>(x + i, n - i, minus_infinity<A>()), m[0]);
  }
  m[0] = max_native(max_native(m[0], m[1]), max_native(m[2], m[3]));
  return max(m[0]);
}

// e[i] = exp(x[i] - m) unless `e` is null; the sum. Asks for as many elements
// behind these, a line at a time: exponentials leave memory idle, and the next
// row is what follows.
template <bool Store, typename A, typename T>
MLX_INLINE A exp_sum(const T* x, A m, A* e, size_t n) {
  using V = Vec<A>;
  constexpr size_t kLine = 64 / sizeof(T);
  V shift(m);
  V sums[4];
  for (V& v : sums) {
    v = V(A(0));
  }
  size_t i = 0;
  for (; i + 4 * V::size <= n; i += 4 * V::size) {
    for (size_t k = 0; k < 4 * V::size; k += kLine) {
      __builtin_prefetch(x + n + i + k);
    }
    for (int k = 0; k < 4; ++k) {
      V v = math::exp(get<A>(x + i + k * V::size) - shift);
      if (Store) {
        v.store(e + i + k * V::size);
      }
      sums[k] += v;
    }
  }
  for (; i + V::size <= n; i += V::size) {
    V v = math::exp(get<A>(x + i) - shift);
    if (Store) {
      v.store(e + i);
    }
    sums[0] += v;
  }
  A total = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (i < n) {
    V v = math::exp(get<A>(x + i, n - i, minus_infinity<A>()) - shift);
    if (Store) {
      v.store_partial(e + i, n - i);
    }
    for (size_t k = 0; k < n - i; ++k) {
      total += v[int(k)];
    }
  }
  return total;
}

template <typename A, typename T>
MLX_INLINE void scale(const A* e, A factor, T* y, size_t n) {
  using V = Vec<A>;
  size_t i = 0;
  for (; i + V::size <= n; i += V::size) {
    store_as(V::load(e + i) * V(factor), y + i);
  }
  if (i < n) {
    store_partial_as(V::load_partial(e + i, n - i) * V(factor), y + i, n - i);
  }
}

// Largest element and sum of exponentials of the elements so far.
template <typename A>
struct Running {
  A max = minus_infinity<A>();
  double sum = 0;

  void add(A block_max, A block_sum) {
    if (block_max > max) {
      sum *= __builtin_exp(double(max) - double(block_max));
      max = block_max;
      sum += block_sum;
    } else if (block_max == max) {
      sum += block_sum;
    } else {
      sum += block_sum * __builtin_exp(double(block_max) - double(max));
    }
  }
};

template <typename A, typename T>
MLX_INLINE Running<A> running(const T* x, size_t n) {
  Running<A> all;
  for (size_t i = 0; i < n; i += kBlock) {
    size_t count = n - i < kBlock ? n - i : kBlock;
    A m = row_max<A>(x + i, count);
    // Without a shift by infinity: the sum then is 0 or infinite, or NaN if
    // there is one.
    bool is_infinite = m - m != A(0);
    A s = exp_sum<false>(
        x + i, is_infinite ? A(0) : m, static_cast<A*>(nullptr), count);
    if (s != A(0)) {
      all.add(m, s);
    }
  }
  return all;
}

template <typename A, typename T>
void long_row(const T* x, T* y, size_t n) {
  Running<A> all = running<A>(x, n);
  // As in short rows, where inf - inf spoils the sum.
  A factor = all.max - all.max == A(0) ? A(1 / all.sum) : A(__builtin_nanf(""));
  A e[kBlock];
  for (size_t i = 0; i < n; i += kBlock) {
    size_t count = n - i < kBlock ? n - i : kBlock;
    exp_sum<true>(x + i, all.max, e, count);
    scale(e, factor, y + i, count);
  }
}

template <typename A, typename T>
MLX_INLINE void short_row(const T* x, T* y, size_t n) {
  A m = row_max<A>(x, n);
  if constexpr (sizeof(T) == sizeof(A)) {
    A total = exp_sum<true>(x, m, y, n);
    scale(y, A(1) / total, y, n);
  } else {
    A e[kBlock];
    A total = exp_sum<true>(x, m, e, n);
    scale(e, A(1) / total, y, n);
  }
}

template <typename A, typename T>
void rows_loop(const void* from, void* to, size_t rows, size_t n) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  size_t limit = sizeof(T) == sizeof(A) ? kInPlace : kBlock;
  for (size_t r = 0; r < rows; ++r, x += n, y += n) {
    if (n <= limit) {
      short_row<A>(x, y, n);
    } else {
      long_row<A>(x, y, n);
    }
  }
}

template <typename A, typename T>
void sum_row(const void* x, size_t n, double* max, double* sum) {
  Running<A> all = running<A>(static_cast<const T*>(x), n);
  *max = all.max;
  *sum = all.sum;
}

}  // namespace

void softmax_rows(const void* x, void* y, size_t rows, size_t n, Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::float16:
      return rows_loop<float, float16_t>(x, y, rows, n);
    case Dtype::Val::bfloat16:
      return rows_loop<float, bfloat16_t>(x, y, rows, n);
    case Dtype::Val::float32:
      return rows_loop<float, float>(x, y, rows, n);
    default:
      return rows_loop<double, double>(x, y, rows, n);
  }
}

void logsumexp_row(
    const void* x, size_t n, double* max, double* sum, Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::float16:
      return sum_row<float, float16_t>(x, n, max, sum);
    case Dtype::Val::bfloat16:
      return sum_row<float, bfloat16_t>(x, n, max, sum);
    case Dtype::Val::float32:
      return sum_row<float, float>(x, n, max, sum);
    default:
      return sum_row<double, double>(x, n, max, sum);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
