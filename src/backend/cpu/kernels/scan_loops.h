// Loops of the running reductions, for one combination `Op`. Along contiguous
// elements a register is scanned in log2(lanes) steps of shifting and
// combining, then meets the total of what came before: one dependent operation
// a register instead of one an element. Across rows the lanes are independent
// columns.
#pragma once

#include "backend/cpu/kernels/reduce_loops.h"
#include "backend/cpu/kernels/scan.h"

namespace mlx::core::cpu::MLX_ISA {

namespace scans {

using detail::get;
using detail::get_rest;
using detail::Lanes;

template <typename Op, typename A>
MLX_INLINE A one(A a, A b) {
  Lanes<A> r = Op::of(Lanes<A>(a), Lanes<A>(b));
  A lanes[Lanes<A>::size];
  r.store(lanes);
  return lanes[0];
}

/// The lanes moved up by k; the first k come from `fill`.
template <typename V>
MLX_INLINE V moved_up(V x, V fill, int k) {
  using Int = IntFor<typename V::Element>;
  Raw<Int, kVecBytes> from;
  for (int i = 0; i < V::size; ++i) {
    from[i] = Int(i < k ? i : V::size + i - k);
  }
  return typename V::RawT(__builtin_shuffle(fill.v, x.v, from));
}
template <typename V>
MLX_INLINE V reversed(V x) {
  using Int = IntFor<typename V::Element>;
  Raw<Int, kVecBytes> from;
  for (int i = 0; i < V::size; ++i) {
    from[i] = Int(V::size - 1 - i);
  }
  return typename V::RawT(__builtin_shuffle(x.v, from));
}

template <typename T, typename A>
MLX_INLINE void put(A value, T* p) {
  if constexpr (detail::is_same<A, T>) {
    *p = value;
  } else {
    store_partial_as(Vec<A>(value), p, 1);
  }
}
template <typename T, typename A>
MLX_INLINE A take(const T* p) {
  if constexpr (detail::is_half<T>) {
    A lanes[Lanes<A>::size];
    get_rest(p, 1, lanes);
    return lanes[0];
  } else {
    return *p;
  }
}

/// The running total. Sums of float32 specialise it, to keep it in double.
template <typename Op, typename A>
struct Carry {
  A total = Op::template neutral<A>();

  MLX_INLINE A value() const { return total; }
  MLX_INLINE void add(A x) { total = one<Op>(total, x); }
};
// Registers of the row, from its beginning or its end; returns the number of
// elements done.
template <typename Op, typename T, typename A, bool Reverse>
MLX_INLINE size_t scan_registers(
    const T* x, T* y, size_t n, bool inclusive, Carry<Op, A>& carry) {
  using V = Vec<A>;
  V neutral(Op::template neutral<A>());
  size_t i = 0;
  for (; i + V::size <= n; i += V::size) {
    size_t at = Reverse ? n - i - V::size : i;
    V v = get<A>(x + at);
    v = Reverse ? reversed(v) : v;
    for (int k = 1; k < V::size; k *= 2) {
      v = Op::of(moved_up(v, neutral, k), v);
    }
    V shown = inclusive ? v : moved_up(v, neutral, 1);
    shown = Op::of(V(carry.value()), shown);
    carry.add(v[V::size - 1]);
    store_as(Reverse ? reversed(shown) : shown, y + at);
  }
  return i;
}

template <typename Op, typename T, typename A, bool Reverse>
void scan_row(const T* x, T* y, size_t n, bool inclusive) {
  Carry<Op, A> carry;
  size_t i = 0;
  if constexpr (sizeof(A) >= 4 && Lanes<A>::size > 1) {
    i = scan_registers<Op, T, A, Reverse>(x, y, n, inclusive, carry);
  }
  for (; i < n; ++i) {
    size_t at = Reverse ? n - 1 - i : i;
    A v = take<T, A>(x + at);
    A before = carry.value();
    carry.add(v);
    put(inclusive ? carry.value() : before, y + at);
  }
}

// Columns side by side, their totals in a panel of the first cache.
template <typename Op, typename T, typename A>
void scan_columns(
    const T* x,
    T* y,
    size_t n,
    size_t cols,
    size_t stride,
    bool reverse,
    bool inclusive) {
  using V = Lanes<A>;
  constexpr size_t kWidth = V::size;
  constexpr size_t kPanel = 512;
  A total[kPanel];
  for (size_t first = 0; first < cols; first += kPanel) {
    size_t m = cols - first < kPanel ? cols - first : kPanel;
    size_t whole = m - m % kWidth;
    for (size_t c = 0; c < m; ++c) {
      total[c] = Op::template neutral<A>();
    }
    for (size_t i = 0; i < n; ++i) {
      size_t at = (reverse ? n - 1 - i : i) * stride + first;
      for (size_t c = 0; c < whole; c += kWidth) {
        V before = V::load(total + c);
        V after = Op::of(before, get<A>(x + at + c));
        after.store(total + c);
        V shown = inclusive ? after : before;
        if constexpr (detail::is_half<T>) {
          store_as(shown, y + at + c);
        } else {
          shown.store(y + at + c);
        }
      }
      for (size_t c = whole; c < m; ++c) {
        A before = total[c];
        total[c] = one<Op>(before, take<T, A>(x + at + c));
        put(inclusive ? total[c] : before, y + at + c);
      }
    }
  }
}

template <typename Op, typename T, typename A>
void scan_any(
    const void* from,
    void* to,
    size_t n,
    size_t cols,
    size_t stride,
    bool reverse,
    bool inclusive) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  if (cols == 1 && stride == 1) {
    reverse ? scan_row<Op, T, A, true>(x, y, n, inclusive)
            : scan_row<Op, T, A, false>(x, y, n, inclusive);
  } else {
    scan_columns<Op, T, A>(x, y, n, cols, stride, reverse, inclusive);
  }
}

template <typename Op>
ScanFn float_loop(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::float16:
      return &scan_any<Op, float16_t, float>;
    case Dtype::Val::bfloat16:
      return &scan_any<Op, bfloat16_t, float>;
    case Dtype::Val::float32:
      return &scan_any<Op, float, float>;
    case Dtype::Val::float64:
      return &scan_any<Op, double, double>;
    default:
      return nullptr;
  }
}

// Sums and products wrap, so that the sign does not matter to them; it does to
// maxima and minima.
template <typename Op, bool Signed>
ScanFn loop(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return &scan_any<Op, uint8_t, uint8_t>;
    case Dtype::Val::uint16:
      return &scan_any<Op, uint16_t, uint16_t>;
    case Dtype::Val::uint32:
      return &scan_any<Op, uint32_t, uint32_t>;
    case Dtype::Val::uint64:
      return &scan_any<Op, uint64_t, uint64_t>;
    case Dtype::Val::complex64:
      return &scan_any<Op, Complex, Complex>;
    default:
      break;
  }
  using I8 = typename detail::IntOf<1>::type;
  switch (dtype.val()) {
    case Dtype::Val::int8:
      return Signed ? &scan_any<Op, I8, I8> : &scan_any<Op, uint8_t, uint8_t>;
    case Dtype::Val::int16:
      return Signed ? &scan_any<Op, int16_t, int16_t>
                    : &scan_any<Op, uint16_t, uint16_t>;
    case Dtype::Val::int32:
      return Signed ? &scan_any<Op, int32_t, int32_t>
                    : &scan_any<Op, uint32_t, uint32_t>;
    case Dtype::Val::int64:
      return Signed ? &scan_any<Op, int64_t, int64_t>
                    : &scan_any<Op, uint64_t, uint64_t>;
    default:
      return float_loop<Op>(dtype);
  }
}

}  // namespace scans

}  // namespace mlx::core::cpu::MLX_ISA
