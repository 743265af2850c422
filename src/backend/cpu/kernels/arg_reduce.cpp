// The position of the extreme element. Of a row: the extreme first, by the
// loops of max and min in cache, then the first element equal to it. That is
// two fast passes over a block instead of one that tracks positions.
#include "backend/cpu/kernels/reduce_extremes.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename T, typename A>
MLX_INLINE A value(const T* p) {
  if constexpr (detail::is_half<T>) {
    A lanes[Vec<A>::size];
    detail::get_rest(p, 1, lanes);
    return lanes[0];
  } else {
    return *p;
  }
}

template <typename A>
MLX_INLINE bool same(A x, A y) {
  return x == y || (is_nan(x) && is_nan(y));
}

// n elements as accumulators.
template <typename T, typename A>
MLX_INLINE void widen(const T* x, size_t n, A* to) {
  if constexpr (detail::is_half<T>) {
    constexpr size_t kWidth = Vec<A>::size;
    size_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      load_as<A>(x + i).store(to + i);
    }
    if (i < n) {
      load_partial_as<A>(x + i, n - i).store_partial(to + i, n - i);
    }
  } else {
    __builtin_memcpy(to, x, n * sizeof(A));
  }
}

// The first element of x that is the same as `y`.
template <typename T, typename A>
size_t find(const T* x, size_t n, A y) {
  size_t i = 0;
  if constexpr (detail::Lanes<A>::size > 1) {
    using V = Vec<A>;
    bool nan = is_nan(y);
    for (; i + V::size <= n; i += V::size) {
      V v = detail::get<A>(x + i);
      if (any(nan ? v != v : v == V(y))) {
        break;
      }
    }
  }
  while (i + 1 < n && !same(value<T, A>(x + i), y)) {
    ++i;
  }
  return i;
}

template <typename Op, typename T, typename A>
uint32_t arg_row(const void* data, size_t n) {
  constexpr size_t kBlock = 2048;
  const T* x = static_cast<const T*>(data);
  A best = value<T, A>(x);
  size_t at = 0;
  for (size_t begin = 0; begin < n && !is_nan(best); begin += kBlock) {
    size_t count = n - begin < kBlock ? n - begin : kBlock;
    A y = detail::reduce_row<Op, T, A>(x + begin, count);
    // Equal elements of later blocks do not win.
    if (is_nan(y) || (Op::one(best, y) == y && !(best == y))) {
      best = y;
      at = begin;
    } else if (begin == 0) {
      best = y;
    }
  }
  size_t count = n - at < kBlock ? n - at : kBlock;
  return uint32_t(at + find<T, A>(x + at, count, best));
}

// Across rows: a panel of columns keeps its best elements and their rows. The
// compiler vectorises the choice.
template <typename Op, typename T, typename A>
void arg_columns(
    const void* data, int64_t stride, size_t rows, size_t n, uint32_t* to) {
  constexpr size_t kPanel = 512;
  const T* x = static_cast<const T*>(data);
  A best[kPanel];
  A row[kPanel];
  for (size_t first = 0; first < n; first += kPanel, x += kPanel) {
    size_t m = n - first < kPanel ? n - first : kPanel;
    uint32_t* at = to + first;
    for (size_t r = 0; r < rows; ++r) {
      widen(x + int64_t(r) * stride, m, row);
      if (r == 0) {
        __builtin_memcpy(&best, &row, m * sizeof(A));
        __builtin_memset(at, 0, m * sizeof(uint32_t));
        continue;
      }
      for (size_t c = 0; c < m; ++c) {
        bool wins = Op::beats(row[c], best[c]);
        at[c] = wins ? uint32_t(r) : at[c];
        best[c] = wins ? row[c] : best[c];
      }
    }
  }
}

template <typename Op, typename T, typename A>
constexpr ArgReduceLoops arg_pair() {
  return {&arg_row<Op, T, A>, &arg_columns<Op, T, A>};
}

template <typename Op>
ArgReduceLoops arg_loops(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return arg_pair<Op, uint8_t, uint8_t>();
    case Dtype::Val::uint16:
      return arg_pair<Op, uint16_t, uint16_t>();
    case Dtype::Val::uint32:
      return arg_pair<Op, uint32_t, uint32_t>();
    case Dtype::Val::uint64:
      return arg_pair<Op, uint64_t, uint64_t>();
    case Dtype::Val::int8:
      return arg_pair<Op, int8_t, int8_t>();
    case Dtype::Val::int16:
      return arg_pair<Op, int16_t, int16_t>();
    case Dtype::Val::int32:
      return arg_pair<Op, int32_t, int32_t>();
    case Dtype::Val::int64:
      return arg_pair<Op, int64_t, int64_t>();
    case Dtype::Val::float16:
      return arg_pair<Op, float16_t, float>();
    case Dtype::Val::bfloat16:
      return arg_pair<Op, bfloat16_t, float>();
    case Dtype::Val::float32:
      return arg_pair<Op, float, float>();
    case Dtype::Val::float64:
      return arg_pair<Op, double, double>();
    default:
      return arg_pair<Op, Complex, Complex>();
  }
}

}  // namespace

ArgReduceLoops arg_reduce_loops(bool largest, Dtype dtype) {
  return largest ? arg_loops<Max>(dtype) : arg_loops<Min>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
