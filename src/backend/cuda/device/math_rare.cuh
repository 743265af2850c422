// The rest of what math.cuh begins: trigonometry, powers, remainders, shifts.
#pragma once

#include "backend/cuda/device/math.cuh"

namespace mlx::core::cuda::math {

// Trigonometric and hyperbolic functions

MLX_MATH_CALLED float sin_far(float x) {
  return static_cast<float>(::sin(static_cast<double>(x)));
}
MLX_MATH_CALLED float cos_far(float x) {
  return static_cast<float>(::cos(static_cast<double>(x)));
}
MLX_MATH_CALLED float tan_far(float x) {
  return static_cast<float>(::tan(static_cast<double>(x)));
}

/// sin(x + quadrant pi/2) for |x| < 2^17 within 1 ulp: the first step of the
/// reduction is exact, the rounding errors of the second are carried in `low`.
/// Fits on [-pi/4, pi/4]: sine 2^-27.3, cosine 2^-31.
MLX_MATH float sin_shifted(float x, int quadrant) {
  float n = ::rintf(__fmul_rn(x, 0x1.45f306p-1f));
  float first = ::fmaf(n, -0x1.921fb6p+0f, x);
  float second = __fmul_rn(n, 0x1.777a5cp-25f);
  float lost = ::fmaf(n, 0x1.777a5cp-25f, -second);
  float r = __fadd_rn(first, second);
  float low = __fadd_rn(
      __fadd_rn(__fsub_rn(first, r), second), ::fmaf(n, 0x1.ee59dap-50f, lost));
  quadrant += static_cast<int>(n);
  float z = __fmul_rn(r, r);
  float half = __fmul_rn(z, 0.5f);
  float one = __fsub_rn(1.0f, half);
  float sine =
      z * r * core::poly(z, -0x1.555546p-3f, 0x1.110756p-7f, -0x1.994b40p-13f);
  sine = __fadd_rn(r, ::fmaf(low, one, sine));
  float cosine =
      core::poly(z, 0x1.55554ap-5f, -0x1.6c0c82p-10f, 0x1.99ff4ep-16f);
  // (1 - one) - half is what rounding took from `one`.
  float taken = __fsub_rn(__fsub_rn(1.0f, one), half);
  cosine = __fadd_rn(one, ::fmaf(z * z, cosine, ::fmaf(-r, low, taken)));
  float y = (quadrant & 1) == 0 ? sine : cosine;
  return (quadrant & 2) == 0 ? y : -y;
}
MLX_MATH float sin(float x) {
  if (!(::fabsf(x) < 0x1p17f)) {
    return sin_far(x);
  }
  return x == 0.0f ? x : sin_shifted(x, 0);
}
MLX_MATH float cos(float x) {
  return ::fabsf(x) < 0x1p17f ? sin_shifted(x, 1) : cos_far(x);
}
MLX_MATH float tan(float x) {
  if (!(::fabsf(x) < 0x1p17f)) {
    return tan_far(x);
  }
  return x == 0.0f ? x : static_cast<float>(core::tan(x));
}

MLX_MATH float arctan2(float y, float x) {
  double u = x, v = y;
  float a = static_cast<float>(core::angle(::fabs(v), u, ::fabs(u)));
  // NaN also for opposite infinities, hence the test.
  return x != x || y != y ? x + y : ::copysignf(a, y);
}
MLX_MATH float arctan(float x) {
  float a = static_cast<float>(core::angle(::fabsf(x), 1.0, 1.0));
  return x == x ? ::copysignf(a, x) : x;
}
MLX_MATH float arcsin(float x) {
  double v = ::fabsf(x);
  double other = ::sqrt((1.0 - v) * (1.0 + v));
  float a = static_cast<float>(core::angle(v, other, other));
  return v <= 1.0 ? ::copysignf(a, x) : nan();
}
MLX_MATH float arccos(float x) {
  double v = x;
  double other = ::sqrt((1.0 - v) * (1.0 + v));
  float a = static_cast<float>(core::angle(other, v, ::fabs(v)));
  return ::fabs(v) <= 1.0 ? a : nan();
}

MLX_MATH float sinh(float x) {
  double e = core::expm1(::fabsf(x));
  return ::copysignf(static_cast<float>(0.5 * (e + e / (e + 1.0))), x);
}
MLX_MATH float cosh(float x) {
  double e = core::exp(x);
  return static_cast<float>(0.5 * (e + 1.0 / e));
}
MLX_MATH float arcsinh(float x) {
  double v = ::fabsf(x), square = v * v;
  double y = core::log1p(v + square / (1.0 + ::sqrt(square + 1.0)));
  float magnitude = v == core::infinity() ? kInfinity : static_cast<float>(y);
  return ::copysignf(magnitude, x);
}
MLX_MATH float arccosh(float x) {
  double t = static_cast<double>(x) - 1.0;
  double y = core::log1p(t + ::sqrt(t * (t + 2.0)));
  return x >= 1.0f ? static_cast<float>(y) : nan();
}
MLX_MATH float arctanh(float x) {
  double v = ::fabsf(x);
  double y = 0.5 * core::log1p((v + v) / (1.0 - v));
  return ::copysignf(static_cast<float>(y), x);
}

#define MLX_DOUBLE(name, function)        \
  MLX_MATH_CALLED double name(double x) { \
    return ::function(x);                 \
  }
MLX_DOUBLE(sin, sin)
MLX_DOUBLE(cos, cos)
MLX_DOUBLE(tan, tan)
MLX_DOUBLE(arcsin, asin)
MLX_DOUBLE(arccos, acos)
MLX_DOUBLE(arctan, atan)
MLX_DOUBLE(sinh, sinh)
MLX_DOUBLE(cosh, cosh)
MLX_DOUBLE(arcsinh, asinh)
MLX_DOUBLE(arccosh, acosh)
MLX_DOUBLE(arctanh, atanh)
#undef MLX_DOUBLE
MLX_MATH_CALLED double arctan2(double y, double x) {
  return ::atan2(y, x);
}

// Division, remainder, powers, shifts

template <Integer T>
MLX_MATH T floor_divide(T a, T b) {
  if (b == T(0)) {
    return T(0);
  }
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) {  // the smallest integer wraps
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(U(0) - static_cast<U>(a));
    }
    T q = static_cast<T>(a / b);
    bool down = (a < T(0)) != (b < T(0)) && q * b != a;
    return static_cast<T>(q - (down ? 1 : 0));
  } else {
    return static_cast<T>(a / b);
  }
}
template <Integer T>
MLX_MATH T remainder(T a, T b) {
  if (b == T(0)) {
    return T(0);
  }
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) {
      return T(0);
    }
    T r = static_cast<T>(a % b);
    bool add = r != T(0) && (r < T(0)) != (b < T(0));
    return static_cast<T>(r + (add ? b : T(0)));
  } else {
    return static_cast<T>(a % b);
  }
}
MLX_MATH Truth floor_divide(Truth a, Truth b) {
  return a & b;
}
MLX_MATH Truth remainder(Truth, Truth) {
  return Truth(false);
}

/// fmod is exact; one addition gives the sign of b.
MLX_MATH_CALLED float remainder(float a, float b) {
  float r = ::fmodf(a, b);
  if (r == 0.0f) {
    return ::copysignf(0.0f, b);
  }
  return (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
MLX_MATH_CALLED double remainder(double a, double b) {
  double r = ::fmod(a, b);
  if (r == 0.0) {
    return ::copysign(0.0, b);
  }
  return (r < 0.0) != (b < 0.0) ? r + b : r;
}

/// The double quotient of two floats cannot round up to an integer below 2^28,
/// so its floor is exact.
MLX_MATH float floor_divide(float a, float b) {
  return static_cast<float>(::floor(static_cast<double>(a) / b));
}
/// The quotient (a - a % b) / b is within rounding of an integer. What is not
/// finite has no remainder.
MLX_MATH_CALLED double floor_divide(double a, double b) {
  if (b == 0.0 || ::fabs(a) == core::infinity() ||
      ::fabs(b) == core::infinity()) {
    return ::floor(a / b);
  }
  double q = (a - math::remainder(a, b)) / b;
  double whole = ::floor(q);
  whole += q - whole > 0.5 ? 1.0 : 0.0;
  return whole == 0.0 ? ::copysign(0.0, a / b) : whole;
}

/// By repeated squaring.
template <Integer T>
MLX_MATH T power(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b < T(0)) {
      return T(0);
    }
  }
  // Unsigned and at least as wide as int, so that products wrap.
  using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  auto base = static_cast<Wide>(a);
  auto left = static_cast<std::make_unsigned_t<T>>(b);
  Wide result = 1;
#pragma unroll 1
  for (; left != 0; left >>= 1) {
    result *= (left & 1) != 0 ? base : Wide(1);
    base *= base;
  }
  return static_cast<T>(result);
}
MLX_MATH Truth power(Truth a, Truth b) {
  return a | ~b;
}

/// C's pow: exp(b log|a|) in double, relative error 2^-37 before the last
/// rounding.
MLX_MATH float power(float a, float b) {
  // The common ones need no logarithm.
  if (b == 2.0f) {
    return __fmul_rn(a, a);  // not joined with a sum in generated code
  }
  if (b == 3.0f) {
    double x = a;
    return static_cast<float>(x * x * x);
  }
  if (b == 0.5f) {  // unlike sqrt +0 at -0 and infinity at -infinity
    return a == -kInfinity ? kInfinity : ::sqrtf(a + 0.0f);
  }
  float magnitude = ::fabsf(a);
  auto r = static_cast<float>(core::exp(b * core::log(magnitude)));
  // Integers: whole, odd when half of it is not.
  bool whole = ::floorf(b) == b;
  float half = b * 0.5f;
  bool odd = whole && ::floorf(half) != half;
  r = __float_as_int(a) < 0 && odd ? -r : r;
  r = a < 0.0f && !whole && magnitude != kInfinity ? nan() : r;
  r = magnitude == 1.0f && ::fabsf(b) == kInfinity ? 1.0f : r;
  r = a != a || b != b ? a + b : r;
  return b == 0.0f || a == 1.0f ? 1.0f : r;
}
MLX_MATH_CALLED double power(double a, double b) {
  return b == 2.0 ? __dmul_rn(a, a) : ::pow(a, b);
}

/// Shifting out all bits gives 0 (or the sign).
template <Integer T>
MLX_MATH T left_shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  auto count = static_cast<U>(b);
  constexpr U width = sizeof(T) * 8;
  return count < width ? static_cast<T>(static_cast<U>(a) << count) : T(0);
}
template <Integer T>
MLX_MATH T right_shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  auto count = static_cast<U>(b);
  constexpr U last = sizeof(T) * 8 - 1;
  T shifted = static_cast<T>(a >> (count < last ? count : last));
  return std::is_signed_v<T> || count <= last ? shifted : T(0);
}

}  // namespace mlx::core::cuda::math
