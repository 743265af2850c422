// Exponentials and hyperbolic functions. Bounds in ulp were measured over the
// finite float32 inputs (tests/backend/cpu/math_test.cpp).
#pragma once

#include "backend/cpu/simd/math_core.h"

namespace mlx::core::cpu::MLX_ISA::math {

namespace detail {

/// p * 2^n for n in [-150, 128]: in two steps, because 2^n itself may not be a
/// normal number.
MLX_INLINE F scale_by_power(F p, F n) {
#if MLX_ISA_LEVEL >= 4
  return _mm512_scalef_ps(p.v, n.v);
#else
  I k = round_to_int(n);
  I first = k >> 1;
  F low = bitcast<float>((k - first + I(127)) << 23);
  return bitcast<float>(bitcast<int32_t>(p) + (first << 23)) * low;
#endif
}

/// expm1 of the reduced argument, |r| <= log(2) / 2. Fit: 2^-27.8 of exp(r).
MLX_INLINE F expm1_reduced(F r) {
  F q = poly(
      r,
      0x1p-1f,
      0x1.55548ep-3f,
      0x1.55545cp-5f,
      0x1.123be0p-7f,
      0x1.6db594p-10f);
  return fma(r * r, q, r);
}

/// n = round(x / log(2)) and r = x - n log(2). The upper part of log(2) has 15
/// bits, so n times it is exact.
struct Reduced {
  F n, r;
};
MLX_INLINE Reduced reduce_exp(F x) {
  F n = round(x * F(0x1.715476p+0f));
  F r = fma(n, F(-0x1.62e4p-1f), x);
  return {n, fma(n, F(-0x1.7f7d1cp-20f), r)};
}

}  // namespace detail

/// 1.05 ulp, subnormal results included.
MLX_INLINE F exp(F x) {
  // Beyond the limits the result is 0 or infinity; NaN passes.
  x = min_native(F(89.0f), max_native(F(-104.0f), x));
  auto [n, r] = detail::reduce_exp(x);
  return detail::scale_by_power(F(1.0f) + detail::expm1_reduced(r), n);
}

/// 1 ulp. Fit: 2^-28.9.
MLX_INLINE F exp2(F x) {
  x = min_native(F(129.0f), max_native(F(-151.0f), x));
  F n = round(x);
  F r = x - n;
  F t = r * poly(
                r,
                0x1.62e430p-1f,
                0x1.ebfbe0p-3f,
                0x1.c6b08ep-5f,
                0x1.3b29f0p-7f,
                0x1.5d8724p-10f,
                0x1.445e6cp-13f,
                0x1.00f11ap-16f);
  return detail::scale_by_power(F(1.0f) + t, n);
}

/// 0.51 ulp, through double.
MLX_INLINE F expm1(F x) {
  F y = via_double(x, [](D v) { return detail::expm1(v); });
  return select(x == F(0.0f), x, y);  // keeps -0
}

/// 2.4 ulp, subnormal results included.
MLX_INLINE F sigmoid(F x) {
  F e = exp(-abs(x));
  return select(x < F(0.0f), e, F(1.0f)) / (F(1.0f) + e);
}

/// 2.6 ulp: e / (e + 2) with e = expm1(2|x|), in float.
MLX_INLINE F tanh(F x) {
  // From 9.02 on the result rounds to 1.
  F a = min_native(F(20.0f), abs(x) + abs(x));
  auto [n, r] = detail::reduce_exp(a);
  F scale = bitcast<float>((round_to_int(n) + I(127)) << 23);
  F e = fma(scale, detail::expm1_reduced(r), scale - F(1.0f));
  return copysign(e / (e + F(2.0f)), x);
}

/// 0.51 ulp, through double.
MLX_INLINE F sinh(F x) {
  F y = via_double(abs(x), [](D v) {
    D e = detail::expm1(v);
    return D(0.5) * (e + e / (e + D(1.0)));
  });
  return copysign(y, x);
}

/// 0.51 ulp, through double.
MLX_INLINE F cosh(F x) {
  return via_double(x, [](D v) {
    D e = detail::exp(v);
    return D(0.5) * (e + D(1.0) / e);
  });
}

MLX_DOUBLE_BY_LIBM(exp, __builtin_exp)
MLX_DOUBLE_BY_LIBM(exp2, __builtin_exp2)
MLX_DOUBLE_BY_LIBM(expm1, __builtin_expm1)
MLX_DOUBLE_BY_LIBM(tanh, __builtin_tanh)
MLX_DOUBLE_BY_LIBM(sinh, __builtin_sinh)
MLX_DOUBLE_BY_LIBM(cosh, __builtin_cosh)
MLX_INLINE D sigmoid(D x) {
  D e = exp(-abs(x));
  return select(x < D(0.0), e, D(1.0)) / (D(1.0) + e);
}

}  // namespace mlx::core::cpu::MLX_ISA::math
