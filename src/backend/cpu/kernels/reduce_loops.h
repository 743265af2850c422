// The loops behind reduce.h, for one combination `Op` and pairs of stored type
// T and accumulator A. Rows keep eight registers of partial results, which
// hides the latency of an addition and shortens the chain of roundings: an
// element of a block of 4096 float32 goes through 4096 / 64 + 6 additions.
#pragma once

#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/simd/math_complex.h"
#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace detail {

template <typename A>
struct LanesOf {
  using type = Vec<A>;
};
template <>
struct LanesOf<Complex> {
  using type = Complex;
};
template <typename A>
using Lanes = typename LanesOf<A>::type;

template <typename A, typename T>
inline constexpr bool is_same = false;
template <typename A>
inline constexpr bool is_same<A, A> = true;

template <typename A, typename T>
MLX_INLINE Lanes<A> get(const T* p) {
  if constexpr (is_same<A, T>) {
    return Lanes<A>::load(p);
  } else {
    return load_as<A>(p);
  }
}

template <typename T>
inline constexpr bool is_half = false;
template <>
inline constexpr bool is_half<float16_t> = true;
template <>
inline constexpr bool is_half<bfloat16_t> = true;

/// n < Lanes<A>::size elements, as accumulators.
template <typename A, typename T>
MLX_INLINE void get_rest(const T* p, size_t n, A* to) {
  if constexpr (is_half<T>) {
    load_partial_as<A>(p, n).store(to);
  } else {
    for (size_t i = 0; i < n; ++i) {
      to[i] = A(p[i]);
    }
  }
}

/// Elements of a row in memory.
template <typename T, typename A>
struct RowOf {
  const T* x;

  MLX_INLINE Lanes<A> at(size_t i) const { return get<A>(x + i); }
  /// n < Lanes<A>::size of them.
  MLX_INLINE void rest(size_t i, size_t n, A* to) const {
    get_rest(x + i, n, to);
  }
};

template <typename Op, typename A, typename Row>
MLX_INLINE A reduce_any_row(const Row& row, size_t n) {
  using V = Lanes<A>;
  constexpr size_t kWidth = V::size;
  A total = Op::template neutral<A>();
  size_t i = 0;
  if (n >= kWidth) {
    V acc[8];
    for (V& a : acc) {
      a = V(total);
    }
    for (; i + 8 * kWidth <= n; i += 8 * kWidth) {
      for (size_t k = 0; k < 8; ++k) {
        acc[k] = Op::of(acc[k], row.at(i + k * kWidth));
      }
    }
    for (; i + kWidth <= n; i += kWidth) {
      acc[0] = Op::of(acc[0], row.at(i));
    }
    for (size_t k = 4; k > 0; k /= 2) {
      for (size_t j = 0; j < k; ++j) {
        acc[j] = Op::of(acc[j], acc[j + k]);
      }
    }
    A lanes[kWidth];
    acc[0].store(lanes);
    for (size_t k = kWidth / 2; k > 0; k /= 2) {
      for (size_t j = 0; j < k; ++j) {
        lanes[j] = Op::one(lanes[j], lanes[j + k]);
      }
    }
    total = lanes[0];
  }
  // An empty row may have no memory at all.
  if (kWidth > 1 && i < n) {
    A rest[kWidth];
    row.rest(i, n - i, rest);
    for (size_t j = 0; j < n - i; ++j) {
      total = Op::one(total, rest[j]);
    }
  }
  return total;
}

template <typename Op, typename T, typename A>
MLX_INLINE A reduce_row(const T* x, size_t n) {
  return reduce_any_row<Op, A>(RowOf<T, A>{x}, n);
}

template <typename Op, typename T, typename A>
void rows_loop(
    const void* x, int64_t row_stride, size_t rows, size_t n, void* out) {
  const T* from = static_cast<const T*>(x);
  A* to = static_cast<A*>(out);
  for (size_t r = 0; r < rows; ++r) {
    to[r] = reduce_row<Op, T, A>(from + int64_t(r) * row_stride, n);
  }
}

/// Eight rows at a time, so that the results are read and written once for
/// eight rows.
template <typename Op, typename T, typename A>
void wide_columns(const T* x, int64_t stride, size_t rows, size_t n, A* to) {
  using V = Lanes<A>;
  constexpr size_t kWidth = V::size;
  size_t whole = n - n % kWidth;
  for (size_t c = 0; c < n; ++c) {
    to[c] = Op::template neutral<A>();
  }
  for (size_t r = 0; r < rows;) {
    const T* row = x + int64_t(r) * stride;
    size_t step = rows - r >= 8 ? 8 : 1;
    for (size_t c = 0; c < whole; c += kWidth) {
      V a = V::load(to + c);
      if (step == 8) {
        V part[8];
        for (int k = 0; k < 8; ++k) {
          part[k] = get<A>(row + k * stride + c);
        }
        for (int k = 4; k > 0; k /= 2) {
          for (int j = 0; j < k; ++j) {
            part[j] = Op::of(part[j], part[j + k]);
          }
        }
        a = Op::of(a, part[0]);
      } else {
        a = Op::of(a, get<A>(row + c));
      }
      a.store(to + c);
    }
    for (size_t k = 0; k < step && whole < n; ++k) {
      A rest[kWidth];
      get_rest(row + int64_t(k) * stride + whole, n - whole, rest);
      for (size_t c = whole; c < n; ++c) {
        to[c] = Op::one(to[c], rest[c - whole]);
      }
    }
    r += step;
  }
}

/// Columns fewer than a few registers hold are too narrow: several contiguous
/// rows then count as one, whose columns are combined at the end.
inline constexpr size_t kNarrow = 32;

template <typename Op, typename T, typename A>
void columns_loop(
    const void* x, int64_t row_stride, size_t rows, size_t n, void* out) {
  const T* from = static_cast<const T*>(x);
  A* to = static_cast<A*>(out);
  constexpr size_t kSuper = 128;
  if (n >= kNarrow || row_stride != int64_t(n) || rows * n < 2 * kSuper) {
    wide_columns<Op, T, A>(from, row_stride, rows, n, to);
    return;
  }
  // A multiple of whole registers where n allows it.
  size_t group = kSuper / n / Lanes<A>::size * Lanes<A>::size;
  group = group == 0 ? kSuper / n : group;
  size_t width = group * n;
  A parts[kSuper];
  wide_columns<Op, T, A>(from, int64_t(width), rows / group, width, parts);
  size_t rest = rows % group;
  wide_columns<Op, T, A>(from + (rows - rest) * n, int64_t(n), rest, n, to);
  for (size_t i = 0; i < width; ++i) {
    to[i % n] = Op::one(to[i % n], parts[i]);
  }
}

template <typename Op, typename T, typename A>
constexpr ReduceLoops loops() {
  return {&rows_loop<Op, T, A>, &columns_loop<Op, T, A>};
}

}  // namespace detail

/// The loops of sums and products, by type of the elements.
template <typename Op>
ReduceLoops arithmetic_loops(Dtype dtype) {
  using namespace detail;
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return loops<Op, uint8_t, int32_t>();
    case Dtype::Val::uint8:
      return loops<Op, uint8_t, uint32_t>();
    case Dtype::Val::uint16:
      return loops<Op, uint16_t, uint32_t>();
    case Dtype::Val::uint32:
      return loops<Op, uint32_t, uint32_t>();
    case Dtype::Val::uint64:
      return loops<Op, uint64_t, uint64_t>();
    case Dtype::Val::int8:
      return loops<Op, int8_t, int32_t>();
    case Dtype::Val::int16:
      return loops<Op, int16_t, int32_t>();
    case Dtype::Val::int32:
      return loops<Op, int32_t, int32_t>();
    case Dtype::Val::int64:
      return loops<Op, int64_t, int64_t>();
    case Dtype::Val::float16:
      return loops<Op, float16_t, float>();
    case Dtype::Val::bfloat16:
      return loops<Op, bfloat16_t, float>();
    case Dtype::Val::float32:
      return loops<Op, float, float>();
    case Dtype::Val::float64:
      return loops<Op, double, double>();
    default:
      return loops<Op, Complex, Complex>();
  }
}

/// The same for maxima and minima, which stay in the elements' type.
template <typename Op>
ReduceLoops extreme_loops(Dtype dtype) {
  using namespace detail;
  switch (dtype.val()) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return loops<Op, uint8_t, uint8_t>();
    case Dtype::Val::uint16:
      return loops<Op, uint16_t, uint16_t>();
    case Dtype::Val::int8:
      return loops<Op, int8_t, int8_t>();
    case Dtype::Val::int16:
      return loops<Op, int16_t, int16_t>();
    default:
      return arithmetic_loops<Op>(dtype);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
