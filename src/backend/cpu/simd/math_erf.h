// The error function, without an exponential, and its inverse. Bounds in ulp
// were measured over float32 inputs (tests/backend/cpu/math_test.cpp).
#pragma once

#include "backend/cpu/simd/math_log.h"

namespace mlx::core::cpu::MLX_ISA::math {

/// 1.5 ulp (2 without FMA). Below 1: x + x P(x^2), fit 2^-26. From 1 on: 1 -
/// Q(x - 2.25)^4, where Q fits the fourth root of erfc. The root is much
/// smoother than erfc (degree 8 does), and Q's own rounding errors count only 4
/// Q^3 <= 1 fold. Fit: 2^-25.9.
MLX_INLINE F erf(F x) {
  F a = min_native(F(3.95f), abs(x));  // 1 from 3.92 on
  F z = a * a;
  F small =
      fma(a,
          poly(
              z,
              0x1.06eba8p-3f,
              -0x1.81273ep-2f,
              0x1.ce2d20p-4f,
              -0x1.b7fbb4p-6f,
              0x1.5419f2p-8f,
              -0x1.a485d0p-11f,
              0x1.4ae484p-14f),
          a);
  F q = poly(
      a - F(2.25f),
      0x1.908444p-3f,
      -0x1.e8ead2p-3f,
      0x1.999d60p-4f,
      -0x1.119d3cp-8f,
      -0x1.3e67c2p-7f,
      0x1.3f3c7ep-9f,
      0x1.bd6ad2p-12f,
      -0x1.cb5368p-13f,
      -0x1.6180bcp-16f);
  q = q * q;
  F large = fma(q, -q, F(1.0f));
  return copysign(select(a < F(1.0f), small, large), x);
}

/// 2.5 ulp (3 without FMA). x times a polynomial in w = -log(1 - x^2) up to w
/// = 6 (fit 2^-26.4), beyond in sqrt(w) (2^-25.7). The leading coefficients, in
/// two parts, join last, so that their product with x is rounded once.
MLX_INLINE F erfinv(F x) {
  F a = abs(x);
  F w = -log(fma(F(1.0f) - a, a, F(1.0f) - a));  // (1 - a)(1 + a)
  F near = poly(
      w - F(3.0f),
      -0x1.dd23fcp-25f,
      0x1.eedbecp-3f,
      -0x1.780eeap-8f,
      -0x1.b667e2p-11f,
      0x1.993658p-13f,
      -0x1.aa7002p-17f,
      -0x1.dcb210p-20f,
      0x1.e17d6ep-22f,
      -0x1.3b0056p-26f,
      -0x1.78249ap-28f,
      0x1.57e020p-31f);
  F far = poly(
      sqrt(w) - F(3.25f),
      -0x1.32ce5ep-24f,
      0x1.0158a6p+0f,
      0x1.600bd8p-8f,
      -0x1.eba32ep-9f,
      0x1.453512p-9f,
      -0x1.bb13b8p-10f,
      0x1.050ba0p-10f,
      -0x1.7229f2p-12f,
      -0x1.9d7278p-15f,
      0x1.3a8708p-14f);
  auto in_near = w < F(6.0f);
  F lead = select(in_near, F(0x1.9fa074p+0f), F(0x1.8abcc4p+1f));
  F y = fma(x, lead, x * select(in_near, near, far));
  y = select(a == F(1.0f), F(kInfinity), y);
  return select(a <= F(1.0f), copysign(y, x), F(__builtin_nanf("")));
}

MLX_DOUBLE_BY_LIBM(erf, __builtin_erf)

/// Halley steps (cubic: erf'' = -2 y erf') from a float start, on erf or, where
/// 1 - |x| is small, on erfc.
MLX_INLINE double erfinv_lane(double x, double start) {
  double a = __builtin_fabs(x), y = __builtin_fabs(start);
  if (!(a < 1.0)) {
    return a == 1.0 ? x * __builtin_inf() : __builtin_nan("");
  }
  constexpr double kHalfSqrtPi = 0.88622692545275801365;
  for (int i = 0; i < 8; ++i) {
    double error =
        a < 0.5 ? __builtin_erf(y) - a : (1.0 - a) - __builtin_erfc(y);
    double step = error * kHalfSqrtPi * __builtin_exp(y * y);
    step /= 1.0 + y * step;
    y -= step;
    if (!(__builtin_fabs(step) > 1e-6 * y)) {
      break;
    }
  }
  return __builtin_copysign(y, x);
}
MLX_INLINE D erfinv(D x) {
  // Close to 1 the float argument would be 1: start from the largest below.
  D limit(0x1.fffffep-1);
  D inside = max_native(-limit, min_native(limit, x));
  F start = erfinv(narrow(inside, inside));
  return per_lane(x, widen_low(start), [](double v, double s) {
    return erfinv_lane(v, s);
  });
}

}  // namespace mlx::core::cpu::MLX_ISA::math
