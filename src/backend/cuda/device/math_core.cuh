// What the float32 functions are built from: exponential, logarithm, tangent
// and angle in double, with polynomials as long as a float result needs. Fits
// are minimax ones made for this code (relative errors beside each); after the
// last rounding a result is within 0.51 ulp. The H200 computes double at half
// the rate of float, so this is cheaper than it looks.
#pragma once

#include <cstdint>

namespace mlx::core::cuda::math::core {

/// c0 + x * (c1 + x * (...)).
template <typename T>
__device__ __forceinline__ T poly(T, T c) {
  return c;
}
template <typename T, typename... Rest>
__device__ __forceinline__ T poly(T x, T c, Rest... rest) {
  return ::fma(poly(x, static_cast<T>(rest)...), x, c);
}

__device__ __forceinline__ double infinity() {
  return __longlong_as_double(0x7ff0000000000000ll);
}
__device__ __forceinline__ double nan() {
  return __longlong_as_double(0x7ff8000000000000ll);
}

/// exp(x) = scale * (1 + t), t = expm1 of the argument left when multiples of
/// log(2) are taken away.
struct ExpParts {
  double scale, t;
};

// Beyond +-200 floats are infinite or zero; NaN passes. Adding 1.5 * 2^52
// rounds to an integer and leaves it in the lowest bits. Fit of t: 2^-39.
__device__ __forceinline__ ExpParts exp_parts(double x) {
  x = x < -200.0 ? -200.0 : x;
  x = x > 200.0 ? 200.0 : x;
  double shifted = __dadd_rn(__dmul_rn(x, 0x1.71547652b82fep+0), 0x1.8p52);
  double n = __dadd_rn(shifted, -0x1.8p52);
  double r = ::fma(n, -0x1.62e42fefa39efp-1, x);
  double q = poly(
      r,
      0x1.ffffffffea744p-2,
      0x1.5555557ec8b3ap-3,
      0x1.5555558b438a0p-5,
      0x1.1110a0d86b384p-7,
      0x1.6c16215a8e257p-10,
      0x1.a1879e7f02649p-13,
      0x1.a18cccc793295p-16);
  uint64_t exponent =
      (static_cast<uint64_t>(__double_as_longlong(shifted)) << 52) +
      0x3ff0000000000000u;
  return {
      __longlong_as_double(static_cast<long long>(exponent)),
      ::fma(r * r, q, r)};
}

__device__ __forceinline__ double exp(double x) {
  ExpParts p = exp_parts(x);
  return ::fma(p.scale, p.t, p.scale);
}
__device__ __forceinline__ double expm1(double x) {
  ExpParts p = exp_parts(x);
  return ::fma(p.scale, p.t, p.scale - 1.0);
}

/// x = (1 + f) 2^e with 1 + f in [sqrt(1/2), sqrt(2)).
struct LogParts {
  double f, e;
};

/// For positive normal numbers.
__device__ __forceinline__ LogParts log_parts(double x) {
  auto bits = static_cast<uint64_t>(__double_as_longlong(x));
  // Moves the border between exponents from 1 to sqrt(1/2).
  uint64_t e = (bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
  uint64_t m = bits - (e << 52) + 0x3ff0000000000000u;
  return {
      __longlong_as_double(static_cast<long long>(m)) - 1.0,
      static_cast<double>(static_cast<int>(e) - 1023)};
}

/// log((1 + f) 2^e) by 2 atanh(f / (2 + f)). Fit: 2^-52.
__device__ __forceinline__ double log_sum(double f, double e) {
  double s = f / (2.0 + f);
  double z = s * s;
  double p = poly(
      z,
      0x1.5555555553935p-1,
      0x1.999999a2a0557p-2,
      0x1.2492416eddbb2p-2,
      0x1.c7227d52d1833p-3,
      0x1.732b72f916d91p-3,
      0x1.58804670e9286p-3);
  return ::fma(e, 0x1.62e42fefa39efp-1, ::fma(s * z, p, s + s));
}

/// The limits of log at zero, infinity and beyond its domain.
__device__ __forceinline__ double log_limits(double x, double result) {
  result = x == infinity() ? x : result;
  result = x == 0.0 ? -infinity() : result;
  return x >= 0.0 ? result : nan();
}

/// For values that came from float: normal numbers in double.
__device__ __forceinline__ double log(double x) {
  LogParts p = log_parts(x);
  return log_limits(x, log_sum(p.f, p.e));
}
/// Near zero the fraction is x itself, which keeps the relative precision.
__device__ __forceinline__ double log1p(double x) {
  double w = 1.0 + x;
  LogParts p = log_parts(w);
  bool near = ::fabs(x) < 0.29;
  return log_limits(w, log_sum(near ? x : p.f, near ? 0.0 : p.e));
}

/// The tangent for |x| < 2^17: x - n pi/2 with pi/2 in three parts, the first
/// two of 33 bits, so that their products with n are exact. Fits on the
/// reduced argument: sine 2^-47, cosine 2^-43.
__device__ __forceinline__ double tan(double x) {
  double n = ::rint(x * 0x1.45f306dc9c883p-1);
  double r = ::fma(n, -0x1.921fb54400000p+0, x);
  r = ::fma(n, -0x1.0b4611a600000p-34, r);
  r = ::fma(n, -0x1.3198a2e037073p-69, r);
  double z = r * r;
  double sine = ::fma(
      z * r,
      poly(
          z,
          -0x1.55555555523c6p-3,
          0x1.1111110c9eb48p-7,
          -0x1.a019f95532166p-13,
          0x1.71d77a0c8a2d1p-19,
          -0x1.a965ccd5b3c1dp-26),
      r);
  double cosine = ::fma(
      z * z,
      poly(
          z,
          0x1.5555554f48ba3p-5,
          -0x1.6c16b892e2c85p-10,
          0x1.a0111c4049abdp-16,
          -0x1.242a061785c20p-22),
      ::fma(z, -0.5, 1.0));
  bool even = (static_cast<int>(n) & 1) == 0;
  return (even ? sine : -cosine) / (even ? cosine : sine);
}

/// The angle in [0, pi] of the point (x, y), y >= 0, given |x|. Fit: 2^-36.
__device__ __forceinline__ double angle(double y, double x, double magnitude) {
  bool steep = y > magnitude;
  double upper = steep ? magnitude : y;
  double lower = steep ? y : magnitude;
  double q = upper / lower;
  q = upper == lower ? 1.0 : q;  // both infinite
  q = lower == 0.0 ? 0.0 : q;
  double z = q * q;
  double p = poly(
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
  double a = ::fma(q * z, p, q);
  a = steep ? 0x1.921fb54442d18p+0 - a : a;
  bool left = __double_as_longlong(x) < 0;  // -0 too
  return left ? 0x1.921fb54442d18p+1 - a : a;
}

}  // namespace mlx::core::cuda::math::core
