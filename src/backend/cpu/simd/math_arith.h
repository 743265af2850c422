// Division, remainder, powers, signs, shifts and the like for every vector
// type. Integers follow design.md: division rounds down, anything divided by
// zero is 0, powers wrap, a negative exponent gives 0; nothing traps.
#pragma once

#include "backend/cpu/simd/math_core.h"
#include "backend/cpu/simd/vec_bool.h"

namespace mlx::core::cpu::MLX_ISA::math {

using MLX_ISA::abs;
using MLX_ISA::maximum;
using MLX_ISA::minimum;
using MLX_ISA::sqrt;

/// NaN for NaN, and zeros as they are.
template <typename T>
MLX_INLINE Vec<T> sign(Vec<T> x) {
  using V = Vec<T>;
  if constexpr (V::real) {
    // Zero of either sign gives 0, NaN itself.
    return select((x < V(0)) | (x > V(0)), copysign(V(1), x), x + V(0));
  } else if constexpr (T(-1) < T(0)) {
    return select(x < V(T(0)), V(T(-1)), min_native(x, V(T(1))));
  } else {
    return min_native(x, V(T(1)));
  }
}
MLX_INLINE Vec<bool> sign(Vec<bool> x) {
  return x;
}

// Integers and bool are whole already.
#define MLX_WHOLE(name)              \
  template <typename T>              \
  MLX_INLINE Vec<T> name(Vec<T> x) { \
    if constexpr (Vec<T>::real) {    \
      return MLX_ISA::name(x);       \
    } else {                         \
      return x;                      \
    }                                \
  }
MLX_WHOLE(floor)
MLX_WHOLE(ceil)
MLX_WHOLE(round)
MLX_WHOLE(trunc)
#undef MLX_WHOLE

template <typename T>
MLX_INLINE Vec<T> conjugate(Vec<T> x) {
  return x;
}
template <typename T>
MLX_INLINE Vec<T> real(Vec<T> x) {
  return x;
}
template <typename T>
MLX_INLINE Vec<T> imag(Vec<T>) {
  return Vec<T>(T(0));
}

/// Correctly rounded root and quotient: 1.5 ulp.
template <typename T>
MLX_INLINE Vec<T> rsqrt(Vec<T> x) {
  return Vec<T>(1) / MLX_ISA::sqrt(x);
}

template <typename V>
MLX_INLINE typename V::MaskT equal_nan(V a, V b) {
  if constexpr (V::real) {
    return (a == b) | ((a != a) & (b != b));
  } else {
    return a == b;
  }
}

namespace detail {

template <typename T>
MLX_INLINE T floor_divide_lane(T a, T b) {
  if (b == 0) {
    return 0;
  }
  if constexpr (T(-1) < T(0)) {
    if (b == -1) {  // the smallest integer wraps
      return static_cast<T>(UIntFor<T>(0) - static_cast<UIntFor<T>>(a));
    }
    T q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
  }
  return a / b;
}

template <typename T>
MLX_INLINE T remainder_lane(T a, T b) {
  if (b == 0) {
    return 0;
  }
  if constexpr (T(-1) < T(0)) {
    if (b == -1) {
      return 0;
    }
    T r = a % b;
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
  }
  return a % b;
}

MLX_INLINE double remainder_lane(double a, double b) {
  double r = __builtin_fmod(a, b);
  if (r == 0) {
    return __builtin_copysign(0.0, b);
  }
  return (r < 0) != (b < 0) ? r + b : r;
}

// The quotient (a - a % b) / b is within rounding of an integer. What is not
// finite has no remainder.
MLX_INLINE double floor_divide_lane(double a, double b) {
  constexpr double kInfinity = __builtin_inf();
  if (b == 0 || __builtin_fabs(a) == kInfinity ||
      __builtin_fabs(b) == kInfinity) {
    return __builtin_floor(a / b);
  }
  double q = (a - remainder_lane(a, b)) / b;
  double whole = __builtin_floor(q);
  whole += q - whole > 0.5;
  return whole == 0 ? __builtin_copysign(0.0, a / b) : whole;
}

template <typename T, typename Fn>
MLX_INLINE Vec<T> lanes(Vec<T> a, Vec<T> b, Fn fn) {
  T x[Vec<T>::size], y[Vec<T>::size];
  a.store(x);
  b.store(y);
#pragma GCC unroll 1
  for (int i = 0; i < Vec<T>::size; ++i) {
    x[i] = fn(x[i], y[i]);
  }
  return Vec<T>::load(x);
}

}  // namespace detail

/// The quotient rounded down. float32: the double quotient of two floats cannot
/// round up to an integer below 2^28, so its floor is exact.
template <typename T>
MLX_INLINE Vec<T> floor_divide(Vec<T> a, Vec<T> b) {
  return detail::lanes(
      a, b, [](T x, T y) { return detail::floor_divide_lane(x, y); });
}
MLX_INLINE F floor_divide(F a, F b) {
  return via_double(a, b, [](D x, D y) { return MLX_ISA::floor(x / y); });
}
MLX_INLINE I floor_divide(I a, I b) {
  using Half = Raw<int32_t, kVecBytes / 2>;
  using Halves = MLX_ISA::detail::Halves<Half>;
  auto x = __builtin_bit_cast(Halves, a.v);
  auto y = __builtin_bit_cast(Halves, b.v);
  auto part = [](Half u, Half v) {
    D quotient = D(__builtin_convertvector(u, D::RawT)) /
                 D(__builtin_convertvector(v, D::RawT));
    return __builtin_convertvector(MLX_ISA::floor(quotient).v, Half);
  };
  // The conversion of 2^31 (from -2^31 / -1) gives -2^31, as wrapping does.
  Halves q{part(x.low, y.low), part(x.high, y.high)};
  return keep_if(b != I(0), I(__builtin_bit_cast(I::RawT, q)));
}
MLX_INLINE Vec<bool> floor_divide(Vec<bool> a, Vec<bool> b) {
  return a & b;
}

/// The remainder with the sign of b, exact. float32: double holds q * b while
/// q < 2^28; beyond, fmod lane by lane.
template <typename T>
MLX_INLINE Vec<T> remainder(Vec<T> a, Vec<T> b) {
  return detail::lanes(
      a, b, [](T x, T y) { return detail::remainder_lane(x, y); });
}
MLX_INLINE F remainder(F a, F b) {
  if (any(!(abs(a) < abs(b) * F(0x1p28f)))) {
    return detail::lanes(a, b, [](float x, float y) {
      return static_cast<float>(
          detail::remainder_lane(static_cast<double>(x), y));
    });
  }
  F r = via_double(a, b, [](D x, D y) {
    D r = x - MLX_ISA::floor(x / y) * y;
    // Infinite b: x itself, or b when the signs differ.
    auto differ = ((x < D(0.0)) ^ (y < D(0.0))) & (x != D(0.0));
    D at_infinity = select(differ, y, x);
    return select(abs(y) == D(__builtin_inf()), at_infinity, r);
  });
  return select(r == F(0.0f), copysign(F(0.0f), b), r);
}
MLX_INLINE I remainder(I a, I b) {
  return keep_if(b != I(0), a - floor_divide(a, b) * b);
}
MLX_INLINE Vec<bool> remainder(Vec<bool>, Vec<bool>) {
  return Vec<bool>(false);
}

/// Integers by repeated squaring.
template <typename T>
MLX_INLINE Vec<T> power(Vec<T> a, Vec<T> b) {
  using V = Vec<T>;
  V zero(T(0)), one(T(1));
  V result = one;
  auto negative = b < zero;
  V left = keep_if(!negative, b);
  while (any(left != zero)) {
    result = select((left & one) != zero, result * a, result);
    a = a * a;
    left = left >> 1;
  }
  return keep_if(!negative, result);
}
MLX_INLINE Vec<bool> power(Vec<bool> a, Vec<bool> b) {
  return a | ~b;
}

/// C's pow. exp(b log|a|) in double: relative error 2^-37 before the last
/// rounding, hence 0.51 ulp.
MLX_INLINE F power(F a, F b) {
  F zero(0.0f), one(1.0f);
  F magnitude = abs(a);
  F r = via_double(
      magnitude, b, [](D x, D y) { return detail::exp(y * detail::log(x)); });
  // Integers: whole, odd when half of it is not.
  auto whole = MLX_ISA::floor(b) == b;
  F half = b * F(0.5f);
  auto odd = whole & (MLX_ISA::floor(half) != half);
  auto negative = bitcast<int32_t>(a) < I(0);
  r = select(negative & odd, -r, r);
  auto outside = (a < zero) & !whole & (magnitude != F(kInfinity));
  r = select(outside & (b == b), F(__builtin_nanf("")), r);
  r = select((magnitude == one) & (abs(b) == F(kInfinity)), one, r);
  r = select((a != a) | (b != b), a + b, r);
  return select((b == zero) | (a == one), one, r);
}
MLX_INLINE D power(D a, D b) {
  return per_lane(a, b, [](double x, double y) { return __builtin_pow(x, y); });
}

/// Shifting out all bits gives 0 (or the sign).
template <typename T>
MLX_INLINE Vec<T> left_shift(Vec<T> a, Vec<T> b) {
  using U = Vec<UIntFor<T>>;
  U count = bitcast<UIntFor<T>>(b), width(UIntFor<T>(sizeof(T) * 8));
  auto inside = count < width;
  return keep_if(inside, a << bitcast<T>(keep_if(inside, count)));
}
template <typename T>
MLX_INLINE Vec<T> right_shift(Vec<T> a, Vec<T> b) {
  using U = Vec<UIntFor<T>>;
  constexpr UIntFor<T> kLast = sizeof(T) * 8 - 1;
  U count = bitcast<UIntFor<T>>(b);
  Vec<T> shifted = a >> bitcast<T>(min_native(count, U(kLast)));
  if constexpr (T(-1) < T(0)) {
    return shifted;
  } else {
    return keep_if(count <= U(kLast), shifted);
  }
}

/// b where a holds, else c.
template <typename M, typename T>
MLX_INLINE Vec<T> select(M a, Vec<T> b, Vec<T> c) {
  return MLX_ISA::select(a, b, c);
}

}  // namespace mlx::core::cpu::MLX_ISA::math
