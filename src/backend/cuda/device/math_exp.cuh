// Exponential and expm1 of float, in float: they cost less than moving the
// numbers. Products and sums that must not be joined are spelled out. Bounds
// in ulp were measured over all finite inputs.
#pragma once

#include "backend/cuda/device/math_core.cuh"

namespace mlx::core::cuda::math {

namespace core {

/// x = n log(2) + r + low, |r| <= log(2) / 2 and n = round(x / log(2)) also as
/// the integer k. The upper part of log(2) has 15 bits, so n times it is exact;
/// `low` is what rounding took from r.
struct ExpReduced {
  float r, low;
  int k;
};

__device__ __forceinline__ ExpReduced reduce_exp(float x) {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the lowest bits.
  float shifted = ::fmaf(x, 0x1.715476p+0f, 0x1.8p23f);
  float n = __fsub_rn(shifted, 0x1.8p23f);
  float first = ::fmaf(n, -0x1.62e4p-1f, x);
  float r = ::fmaf(n, -0x1.7f7d1cp-20f, first);
  float low = ::fmaf(n, -0x1.7f7d1cp-20f, __fsub_rn(first, r));
  return {r, low, __float_as_int(shifted) - 0x4b400000};
}

/// (exp(r) - 1 - r) / r^2. Fit: 2^-33 of exp(r).
__device__ __forceinline__ float exp_curve(float r) {
  return poly(
      r,
      0x1p-1f,
      0x1.555556p-3f,
      0x1.5554e8p-5f,
      0x1.110ffap-7f,
      0x1.6d4ccap-10f,
      0x1.a25904p-13f);
}

/// Between the limits; NaN passes.
__device__ __forceinline__ float clamp(float x, float least, float most) {
  x = x < least ? least : x;
  return x > most ? most : x;
}

}  // namespace core

/// 0.98 ulp, subnormal results included.
__device__ __forceinline__ float exp(float x) {
  // Beyond the limits the result is 0 or infinity.
  core::ExpReduced p = core::reduce_exp(core::clamp(x, -104.0f, 89.0f));
  float y =
      __fadd_rn(1.0f, ::fmaf(__fmul_rn(p.r, p.r), core::exp_curve(p.r), p.r));
  // In two steps, because 2^k itself may not be a normal number. A NaN stays
  // one whatever k it made.
  int half = p.k >> 1;
  y = __fmul_rn(y, __int_as_float((half + 127) << 23));
  return __fmul_rn(y, __int_as_float((p.k - half + 127) << 23));
}

/// 0.86 ulp. With s = 2^k / 2 half of the result is s r + (s - 1/2), whose
/// rounding errors are carried along, and s times what r leaves.
__device__ __forceinline__ float expm1(float x) {
  // Beyond the limits the result is -1 or infinity.
  core::ExpReduced p = core::reduce_exp(core::clamp(x, -25.0f, 89.0f));
  float rest = ::fmaf(
      __fmul_rn(p.r, p.r), core::exp_curve(p.r), ::fmaf(p.r, p.low, p.low));
  float s = __int_as_float((p.k + 126) << 23);
  float a = __fsub_rn(s, 0.5f);
  float b = __fmul_rn(s, p.r);
  float sum = __fadd_rn(a, b);
  float lost = __fadd_rn(
      __fadd_rn(__fsub_rn(a, sum), b), __fsub_rn(__fsub_rn(s, a), 0.5f));
  float y = 2.0f * __fadd_rn(sum, ::fmaf(s, rest, lost));
  return ::fabsf(x) < 0x1p-26f ? x : y;  // keeps -0 and what is subnormal
}

}  // namespace mlx::core::cuda::math
