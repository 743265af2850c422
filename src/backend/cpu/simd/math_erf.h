// The error function, without an exponential, and its inverse. Bounds in ulp
// were measured over float32 inputs (tests/backend/cpu/math_test.cpp).
#pragma once

#include "backend/cpu/simd/math_log.h"

namespace mlx::core::cpu::MLX_ISA::math {

namespace detail {

// Where the two forms of erf meet, and how far the upper one goes from there (1
// from 3.93 on).
inline constexpr float kErfBorder = 0x1.2p0f;
inline constexpr float kErfSpan = 0x1.6ap1f;

inline constexpr Constants kMinusOne({-1.0f});
// erf(x) / x - 1 in x^2, relative to erf: 2^-27.3 for |x| <= border.
inline constexpr Constants kErfBelow({
    0x1.06eba8p-3f,
    -0x1.812726p-2f,
    0x1.ce28b0p-4f,
    -0x1.b7b2fep-6f,
    0x1.520090p-8f,
    -0x1.963f5ap-11f,
    0x1.2685b2p-14f,
});
// erfc(border + t)^(1/4) in t up to 3.96, where an error counts 4 erfc^(3/4) /
// erf + 1e-4 fold. Relative to erf it is 2^-26.3 at the border, where rounding
// does most, and grows to 2^-25. Each coefficient was rounded before the next
// ones were fitted.
inline constexpr Constants kErfAbove({
    0x1.27ef8ep-1f,
    -0x1.a5f26ep-2f,
    0x1.77abc0p-6f,
    0x1.89cd66p-5f,
    -0x1.ae60b6p-8f,
    -0x1.46dfd6p-8f,
    0x1.cc821ap-10f,
    -0x1.6654b0p-13f,
});

}  // namespace detail

/// 1.54 ulp (1.71 without FMA), all inputs. Up to 1.125: x + x P(x^2). Beyond:
/// 1 - Q^4, where Q fits the fourth root of erfc. The root is much smoother
/// than erfc (degree 7 does), and Q's own rounding errors count only 4 Q^3 <=
/// 4/5 fold. Q is worked out in halves, even and odd powers, by the side of P:
/// three short chains of operations instead of a long and a longer one.
MLX_INLINE F erf(F x) {
  constexpr auto& below = detail::kErfBelow.rows;
  constexpr auto& above = detail::kErfAbove.rows;
  F sign = x & sign_bit<float>();
  F t = min_native(F(detail::kErfSpan), (x ^ sign) - F(detail::kErfBorder));
  F z = x * x;
  F w = t * t;
  F even = fma(F::load(above[6]), w, above[4]);
  F odd = fma(F::load(above[7]), w, above[5]);
  F p = fma(F::load(below[6]), z, below[5]);
  even = fma(even, w, above[2]);
  odd = fma(odd, w, above[3]);
  p = fma(p, z, below[4]);
  even = fma(even, w, above[0]);
  odd = fma(odd, w, above[1]);
  p = fma(p, z, below[3]);
  F q = fma(odd, t, even);
  p = fma(p, z, below[2]);
  q = q * q;
  p = fma(p, z, below[1]);
  q = fma(q, q, detail::kMinusOne.rows[0]);  // -erf(|x|)
  p = fma(p, z, below[0]);
  return select(
      bitcast<int32_t>(t) < I(0), fma(x, p, x), q ^ (sign ^ sign_bit<float>()));
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
