// Logarithms and inverse hyperbolic functions. Bounds in ulp were measured over
// the finite float32 inputs (tests/backend/cpu/math_test.cpp).
#pragma once

#include "backend/cpu/simd/math_exp.h"

namespace mlx::core::cpu::MLX_ISA::math {

namespace detail {

/// log(m 2^e) for m = 1 + f in [sqrt(1/2), sqrt(2)): log(1 + f) =
/// f - f^2/2 + f^3 P(f), fit 2^-27.1.
MLX_INLINE F log_sum(F f, F e) {
  F p = poly(
      f,
      0x1.55554ap-2f,
      -0x1.000220p-2f,
      0x1.99a596p-3f,
      -0x1.54788ep-3f,
      0x1.226e40p-3f,
      -0x1.0ce05ep-3f,
      0x1.07d122p-3f,
      -0x1.41eeeap-4f);
  F square = f * f;
  F rest = fma(square * f, p, e * F(0x1.7f7d1cp-20f));
  rest = fma(square, F(-0.5f), rest);
  return fma(e, F(0x1.62e4p-1f), f + rest);
}

}  // namespace detail

/// 0.9 ulp, subnormal arguments included.
MLX_INLINE F log(F x) {
  auto tiny = x < F(0x1p-126f);
  F scaled = select(tiny, x * F(0x1p23f), x);
  I bits = bitcast<int32_t>(scaled);
  I shifted = bits + I(0x3f800000 - 0x3f3504f3);  // border at sqrt(1/2)
  F e = convert<float>((shifted >> 23) - I(127));
  e = e - keep_if(tiny, F(23.0f));
  I m = (shifted & I(0x007fffff)) + I(0x3f3504f3);
  F y = detail::log_sum(bitcast<float>(m) - F(1.0f), e);
  y = select(x == F(0.0f), F(-kInfinity), y);
  y = select(x == F(kInfinity), x, y);
  return select(x >= F(0.0f), y, F(__builtin_nanf("")));
}

/// 0.51 ulp, through double; so are all below.
MLX_INLINE F log2(F x) {
  return via_double(
      x, [](D v) { return detail::log(v) * D(0x1.71547652b82fep+0); });
}
MLX_INLINE F log10(F x) {
  return via_double(
      x, [](D v) { return detail::log(v) * D(0x1.bcb7b1526e50ep-2); });
}
MLX_INLINE F log1p(F x) {
  F y = via_double(x, [](D v) { return detail::log1p(v); });
  return select(x == F(0.0f), x, y);  // keeps -0
}

MLX_INLINE F arcsinh(F x) {
  F y = via_double(abs(x), [](D v) {
    D square = v * v;
    return detail::log1p(v + square / (D(1.0) + sqrt(square + D(1.0))));
  });
  return copysign(select(abs(x) == F(kInfinity), F(kInfinity), y), x);
}
MLX_INLINE F arccosh(F x) {
  F y = via_double(x, [](D v) {
    D t = v - D(1.0);
    return detail::log1p(t + sqrt(t * (t + D(2.0))));
  });
  return select(x >= F(1.0f), y, F(__builtin_nanf("")));
}
MLX_INLINE F arctanh(F x) {
  F y = via_double(abs(x), [](D v) {
    return D(0.5) * detail::log1p((v + v) / (D(1.0) - v));
  });
  return copysign(y, x);
}

/// max + log1p(exp(-|a - b|)) in float: 3 ulp of the larger of |max| and the
/// result (they differ only where the sum nearly cancels). Equal operands give
/// a + log(2), infinities included.
MLX_INLINE F logaddexp(F a, F b) {
  F difference = select(a == b, F(0.0f), abs(a - b));
  F u = exp(-difference);
  // 1 + u = 2^e (1 + f) with exact f: u itself keeps small values.
  auto big = u > F(0x1.a8279ap-2f);
  F f = select(big, fma(u, F(0.5f), F(-0.5f)), u);
  F log_term = detail::log_sum(f, keep_if(big, F(1.0f)));
  return maximum(a, b) + select(u == F(0.0f), u, log_term);
}

MLX_DOUBLE_BY_LIBM(log, __builtin_log)
MLX_DOUBLE_BY_LIBM(log2, __builtin_log2)
MLX_DOUBLE_BY_LIBM(log10, __builtin_log10)
MLX_DOUBLE_BY_LIBM(log1p, __builtin_log1p)
MLX_DOUBLE_BY_LIBM(arcsinh, __builtin_asinh)
MLX_DOUBLE_BY_LIBM(arccosh, __builtin_acosh)
MLX_DOUBLE_BY_LIBM(arctanh, __builtin_atanh)
MLX_INLINE D logaddexp(D a, D b) {
  return per_lane(a, b, [](double u, double v) {
    if (u == v) {
      return u + 0x1.62e42fefa39efp-1;
    }
    double larger = u > v ? u : v;
    double smaller = u > v ? v : u;
    return larger + __builtin_log1p(__builtin_exp(smaller - larger));
  });
}

}  // namespace mlx::core::cpu::MLX_ISA::math
