// A row is read from memory once; the later passes find it in cache. The
// variance is that of the centred values, in a pass of its own, because the
// difference of the mean square and the squared mean loses all digits where
// the mean is large.
#include "backend/cpu/kernels/norms.h"

#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

// Partial sums go to double after so many elements.
constexpr size_t kBlock = 4096;

struct Value {
  template <typename V>
  MLX_INLINE V operator()(V x) const {
    return x;
  }
};

template <typename A>
struct SquaredDistance {
  A mean;
  MLX_INLINE Vec<A> operator()(Vec<A> x) const {
    Vec<A> d = x - Vec<A>(mean);
    return d * d;
  }
};

// The sum of f(x[i]).
template <typename A, typename T, typename Fn>
MLX_INLINE double row_sum(const T* x, size_t n, Fn f) {
  using V = Vec<A>;
  double total = 0;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    size_t end = n - begin < kBlock ? n : begin + kBlock;
    V sums[4];
    for (V& v : sums) {
      v = V(A(0));
    }
    size_t i = begin;
    for (; i + 4 * V::size <= end; i += 4 * V::size) {
      for (int k = 0; k < 4; ++k) {
        sums[k] += f(load_as<A>(x + i + k * V::size));
      }
    }
    for (; i + V::size <= end; i += V::size) {
      sums[0] += f(load_as<A>(x + i));
    }
    total += sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    if (i < end) {
      V last = f(load_partial_as<A>(x + i, end - i));
      for (size_t k = 0; k < end - i; ++k) {
        total += last[int(k)];
      }
    }
  }
  return total;
}

// y = (x - mean) * factor * weight + bias.
template <bool Weight, bool Bias, typename A, typename T>
MLX_INLINE void write_row(
    const T* x, A mean, A factor, const T* w, const T* b, T* y, size_t n) {
  using V = Vec<A>;
  V shift(mean);
  V scale(factor);
  auto value = [&](V v, auto load) {
    v = (v - shift) * scale;
    if (Weight) {
      v = v * load(w);
    }
    return Bias ? v + load(b) : v;
  };
  // Meanwhile memory reads the next row, which follows.
  constexpr size_t kLine = 64 / sizeof(T);
  size_t i = 0;
  for (; i + V::size <= n; i += V::size) {
    if (i % kLine == 0) {
      __builtin_prefetch(x + n + i);
    }
    auto load = [i](const T* p) { return load_as<A>(p + i); };
    store_as(value(load(x), load), y + i);
  }
  if (i < n) {
    auto load = [i, n](const T* p) { return load_partial_as<A>(p + i, n - i); };
    store_partial_as(value(load(x), load), y + i, n - i);
  }
}

template <typename A, typename T>
MLX_INLINE void write_row(
    const T* x, A mean, A factor, const T* w, const T* b, T* y, size_t n) {
  if (w && b) {
    write_row<true, true>(x, mean, factor, w, b, y, n);
  } else if (w) {
    write_row<true, false>(x, mean, factor, w, b, y, n);
  } else if (b) {
    write_row<false, true>(x, mean, factor, w, b, y, n);
  } else {
    write_row<false, false>(x, mean, factor, w, b, y, n);
  }
}

template <typename A, typename T, bool Centered>
void norm_rows(const NormRows& rows) {
  const T* x = static_cast<const T*>(rows.x);
  T* y = static_cast<T*>(rows.y);
  size_t n = rows.n;
  for (size_t r = 0; r < rows.rows; ++r, x += n, y += n) {
    A mean = Centered ? A(row_sum<A>(x, n, Value{}) / double(n)) : A(0);
    double power = row_sum<A>(x, n, SquaredDistance<A>{mean}) / double(n);
    A factor = A(1 / __builtin_sqrt(power + double(rows.eps)));
    write_row(
        x,
        mean,
        factor,
        static_cast<const T*>(rows.weight),
        static_cast<const T*>(rows.bias),
        y,
        n);
  }
}

template <bool Centered>
void norm_rows(const NormRows& rows, Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::float16:
      return norm_rows<float, float16_t, Centered>(rows);
    case Dtype::Val::bfloat16:
      return norm_rows<float, bfloat16_t, Centered>(rows);
    case Dtype::Val::float32:
      return norm_rows<float, float, Centered>(rows);
    default:
      return norm_rows<double, double, Centered>(rows);
  }
}

}  // namespace

void rms_norm_rows(const NormRows& rows, Dtype dtype) {
  norm_rows<false>(rows, dtype);
}

void layer_norm_rows(const NormRows& rows, Dtype dtype) {
  norm_rows<true>(rows, dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
