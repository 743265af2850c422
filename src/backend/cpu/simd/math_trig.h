// Trigonometric functions and their inverses. Bounds in ulp were measured over
// the finite float32 inputs (tests/backend/cpu/math_test.cpp).
#pragma once

#include "backend/cpu/simd/math_core.h"

namespace mlx::core::cpu::MLX_ISA::math {

namespace detail {

/// The first 256 bits of 2/pi after the binary point, behind 64 zeros.
inline constexpr uint64_t kTwoOverPi[5] = {
    0,
    0xa2f9836e4e441529u,
    0xfc2757d1f534ddc0u,
    0xdb6295993c439041u,
    0xfe5163abdebbc561u,
};

MLX_INLINE uint64_t two_over_pi_bits(unsigned position) {
  unsigned word = position / 64, shift = position % 64;
  uint64_t bits = kTwoOverPi[word] << shift;
  return shift ? bits | (kTwoOverPi[word + 1] >> (64 - shift)) : bits;
}

/// Payne-Hanek for |x| >= 2^15: x = m 2^e with a 24-bit integer m. Of 2/pi 2^e
/// only the bits of weight 2^1 and below matter modulo 4; a window of 128 bits
/// leaves an error of 2^-62. Returns r in [-pi/4, pi/4] and the quadrant.
MLX_INLINE double reduce_huge(float x, int32_t& quadrant) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  unsigned exponent = (bits >> 23) & 0xff;
  if (exponent == 0xff) {
    quadrant = 0;
    return __builtin_nan("");
  }
  uint64_t m = (bits & 0x7fffff) | 0x800000;
  unsigned position = 62 + exponent - 150;
  uint64_t high = two_over_pi_bits(position);
  uint64_t low = two_over_pi_bits(position + 64);
  uint64_t product =
      m * high +
      static_cast<uint64_t>((static_cast<unsigned __int128>(m) * low) >> 64);
  uint64_t whole = (product + (uint64_t(1) << 61)) >> 62;
  double fraction =
      static_cast<double>(static_cast<int64_t>(product - (whole << 62)));
  double r = fraction * (0x1.921fb54442d18p+0 * 0x1p-62);
  quadrant = static_cast<int32_t>(x < 0 ? -whole : whole) & 3;
  return x < 0 ? -r : r;
}

/// r = x - n pi/2 with pi/2 in three parts; the first two have 33 bits, so
/// their products with n < 2^20 are exact.
struct ReducedDouble {
  D r, n;
};
MLX_INLINE ReducedDouble reduce_medium(D x) {
  D n = round(x * D(0x1.45f306dc9c883p-1));
  D r = x - n * D(0x1.921fb54400000p+0);
  r = r - n * D(0x1.0b4611a600000p-34);
  return {r - n * D(0x1.3198a2e037073p-69), n};
}

/// r + low is the reduced argument to about 48 bits, quadrant modulo 4.
struct ReducedFloat {
  F r, low;
  I quadrant;
};

MLX_INLINE ReducedFloat reduce_by_lane(F x) {
  float in[F::size], high[F::size], low[F::size];
  int32_t quadrant[F::size];
  x.store(in);
  for (int i = 0; i < F::size; ++i) {
    double r;
    if (!(__builtin_fabsf(in[i]) < 0x1p15f)) {
      r = reduce_huge(in[i], quadrant[i]);
    } else {
      double n = __builtin_rint(in[i] * 0x1.45f306dc9c883p-1);
      r = in[i] - n * 0x1.921fb54400000p+0;
      r = r - n * 0x1.0b4611a600000p-34;
      r = r - n * 0x1.3198a2e037073p-69;
      quadrant[i] = static_cast<int32_t>(n);
    }
    high[i] = static_cast<float>(r);
    low[i] = static_cast<float>(r - high[i]);
  }
  return {F::load(high), F::load(low), I::load(quadrant)};
}

// Up to 2^17 three float parts of pi/2 do with FMA: the first step is exact,
// the rounding errors of the second are carried in `low`.
MLX_INLINE ReducedFloat reduce(F x) {
  if (any(!(abs(x) < F(0x1p17f)))) {
    return reduce_by_lane(x);
  }
  if constexpr (kHasFma) {
    F n = round(x * F(0x1.45f306p-1f));
    F first = fma(n, F(-0x1.921fb6p+0f), x);
    F second = rounded(n * F(0x1.777a5cp-25f));
    F lost = fma(n, F(0x1.777a5cp-25f), -second);
    F r = rounded(first + second);
    F low = ((first - r) + second) + fma(n, F(0x1.ee59dap-50f), lost);
    return {r, low, round_to_int(n)};
  }
  ReducedDouble a = reduce_medium(widen_low(x));
  ReducedDouble b = reduce_medium(widen_high(x));
  F r = narrow(a.r, b.r);
  F low = narrow(a.r - widen_low(r), b.r - widen_high(r));
  return {r, low, round_to_int(narrow(a.n, b.n))};
}

/// sin(x + quadrant pi/2). Fits on [-pi/4, pi/4]: sine 2^-27.3, cosine 2^-31.
MLX_INLINE F sin_shifted(F x, int shift) {
  auto [r, low, quadrant] = reduce(x);
  quadrant = quadrant + I(shift);
  F z = r * r;
  F half = z * F(0.5f);
  F one = F(1.0f) - half;
  F sine = z * r * poly(z, -0x1.555546p-3f, 0x1.110756p-7f, -0x1.994b40p-13f);
  sine = r + fma(low, one, sine);
  F cosine = poly(z, 0x1.55554ap-5f, -0x1.6c0c82p-10f, 0x1.99ff4ep-16f);
  // (1 - one) - half is what rounding took from `one`.
  F lost = (F(1.0f) - one) - half;
  cosine = one + fma(z * z, cosine, lost - r * low);
  F y = select((quadrant & I(1)) == I(0), sine, cosine);
  return y ^ bitcast<float>((quadrant & I(2)) << 30);
}

/// tan of the reduced argument in double. Fits: 2^-47 and 2^-43.
MLX_INLINE D tan_reduced(D r, D n) {
  D z = r * r;
  D sine =
      fma(z * r,
          poly(
              z,
              -0x1.55555555523c6p-3,
              0x1.1111110c9eb48p-7,
              -0x1.a019f95532166p-13,
              0x1.71d77a0c8a2d1p-19,
              -0x1.a965ccd5b3c1dp-26),
          r);
  D cosine =
      fma(z * z,
          poly(
              z,
              0x1.5555554f48ba3p-5,
              -0x1.6c16b892e2c85p-10,
              0x1.a0111c4049abdp-16,
              -0x1.242a061785c20p-22),
          D(1.0) - z * D(0.5));
  D half = n * D(0.5);
  auto even = floor(half) == half;
  return select(even, sine, -cosine) / select(even, cosine, sine);
}

/// Angle in [0, pi] of the point (x, y), y >= 0, given |x|. Fit: 2^-36.
MLX_INLINE D angle(D y, D x, D magnitude) {
  auto steep = y > magnitude;
  D upper = select(steep, magnitude, y);
  D lower = select(steep, y, magnitude);
  D q = upper / lower;
  q = select(upper == lower, D(1.0), q);  // both infinite
  q = select(lower == D(0.0), D(0.0), q);
  D z = q * q;
  D p = poly(
      z,
      -0x1.5555553270e52p-2,
      0x1.999985ea37b17p-3,
      -0x1.24905745790cep-3,
      0x1.c6eab9e337b32p-4,
      -0x1.72e40f61d8db8p-4,
      0x1.33d46f09b253cp-4,
      -0x1.f1254f530f419p-5,
      0x1.6b73c8f09b4fcp-5,
      -0x1.b633eadd7ac1ep-6,
      0x1.864c12d2d5473p-7,
      -0x1.baa7d33b98f4fp-9,
      0x1.d702400351cfbp-12);
  D a = fma(q * z, p, q);
  a = select(steep, D(0x1.921fb54442d18p+0) - a, a);
  auto left = bitcast<int64_t>(x) < Vec<int64_t>(0);  // -0 too
  return select(left, D(0x1.921fb54442d18p+1) - a, a);
}

}  // namespace detail

/// 1 ulp for every finite argument.
MLX_INLINE F sin(F x) {
  return select(x == F(0.0f), x, detail::sin_shifted(x, 0));
}
MLX_INLINE F cos(F x) {
  return detail::sin_shifted(x, 1);
}

/// 0.51 ulp for every finite argument, through double; so are all below.
MLX_INLINE F tan(F x) {
  if (any(!(abs(x) < F(0x1p17f)))) {
    auto [r, low, quadrant] = detail::reduce_by_lane(x);
    F n = convert<float>(quadrant);
    F y = narrow(
        detail::tan_reduced(widen_low(r) + widen_low(low), widen_low(n)),
        detail::tan_reduced(widen_high(r) + widen_high(low), widen_high(n)));
    return select(x == F(0.0f), x, y);
  }
  F y = via_double(x, [](D v) {
    auto [r, n] = detail::reduce_medium(v);
    return detail::tan_reduced(r, n);
  });
  return select(x == F(0.0f), x, y);
}

MLX_INLINE F arctan2(F y, F x) {
  F a = via_double(
      y, x, [](D v, D u) { return detail::angle(abs(v), u, abs(u)); });
  a = copysign(a, y);
  F sum = x + y;  // NaN also for opposite infinities, hence the test below
  return select((x != x) | (y != y), sum, a);
}
MLX_INLINE F arctan(F x) {
  F a =
      via_double(abs(x), [](D v) { return detail::angle(v, D(1.0), D(1.0)); });
  return select(x == x, copysign(a, x), x);
}
MLX_INLINE F arcsin(F x) {
  F a = via_double(abs(x), [](D v) {
    D other = sqrt((D(1.0) - v) * (D(1.0) + v));
    return detail::angle(v, other, other);
  });
  return select(abs(x) <= F(1.0f), copysign(a, x), F(__builtin_nanf("")));
}
MLX_INLINE F arccos(F x) {
  F a = via_double(x, [](D v) {
    D other = sqrt((D(1.0) - v) * (D(1.0) + v));
    return detail::angle(other, v, abs(v));
  });
  return select(abs(x) <= F(1.0f), a, F(__builtin_nanf("")));
}

MLX_DOUBLE_BY_LIBM(sin, __builtin_sin)
MLX_DOUBLE_BY_LIBM(cos, __builtin_cos)
MLX_DOUBLE_BY_LIBM(tan, __builtin_tan)
MLX_DOUBLE_BY_LIBM(arcsin, __builtin_asin)
MLX_DOUBLE_BY_LIBM(arccos, __builtin_acos)
MLX_DOUBLE_BY_LIBM(arctan, __builtin_atan)
MLX_INLINE D arctan2(D y, D x) {
  return per_lane(
      y, x, [](double v, double u) { return __builtin_atan2(v, u); });
}

}  // namespace mlx::core::cpu::MLX_ISA::math
