// Arithmetic and order of complex64. Products and quotients are computed in
// double, where float's range neither overflows nor underflows.
#pragma once

#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

#define MLX_COMPLEX __device__ __forceinline__

MLX_COMPLEX complex64 operator+(complex64 a, complex64 b) {
  return {a.re + b.re, a.im + b.im};
}
MLX_COMPLEX complex64 operator-(complex64 a, complex64 b) {
  return {a.re - b.re, a.im - b.im};
}
MLX_COMPLEX complex64 operator-(complex64 a) {
  return {-a.re, -a.im};
}

// The four products are exact in double, so that the operands' order does not
// show.
MLX_COMPLEX complex64 operator*(complex64 a, complex64 b) {
  double c = b.re, d = b.im;
  return {
      static_cast<float>(a.re * c - a.im * d),
      static_cast<float>(a.re * d + a.im * c)};
}

/// As annex G of the C standard: finite / infinite is zero, infinite / finite
/// infinite, though a part be NaN.
inline __device__ __noinline__ complex64
quotient_at_infinity(complex64 a, complex64 b) {
  const float infinity = __int_as_float(0x7f800000);
  auto is_infinite = [=](complex64 x) {
    return ::fabsf(x.re) == infinity || ::fabsf(x.im) == infinity;
  };
  auto is_finite = [=](complex64 x) {
    return ::fabsf(x.re) < infinity && ::fabsf(x.im) < infinity;
  };
  auto direction = [=](complex64 x) {
    return complex64(
        ::copysignf(::fabsf(x.re) == infinity ? 1.0f : 0.0f, x.re),
        ::copysignf(::fabsf(x.im) == infinity ? 1.0f : 0.0f, x.im));
  };
  float size = __int_as_float(0x7fc00000);
  if (is_infinite(a) && is_finite(b)) {
    size = infinity;
    a = direction(a);
  } else if (is_finite(a) && is_infinite(b)) {
    size = 0.0f;
    b = direction(b);
  }
  return {
      size * (a.re * b.re + a.im * b.im), size * (a.im * b.re - a.re * b.im)};
}

inline __device__ __noinline__ complex64 operator/(complex64 a, complex64 b) {
  double u = b.re, v = b.im, norm = u * u + v * v;
  if (norm == 0.0) {  // infinities by parts, as NumPy
    return {a.re / b.re, a.im / b.re};
  }
  complex64 q(
      static_cast<float>((a.re * u + a.im * v) / norm),
      static_cast<float>((a.im * u - a.re * v) / norm));
  return q.re != q.re && q.im != q.im ? quotient_at_infinity(a, b) : q;
}

MLX_COMPLEX bool operator==(complex64 a, complex64 b) {
  return a.re == b.re && a.im == b.im;
}
MLX_COMPLEX bool operator!=(complex64 a, complex64 b) {
  return !(a == b);
}

// By real part, then imaginary part.
MLX_COMPLEX bool operator<(complex64 a, complex64 b) {
  return a.re < b.re || (a.re == b.re && a.im < b.im);
}
MLX_COMPLEX bool operator<=(complex64 a, complex64 b) {
  return a.re < b.re || (a.re == b.re && a.im <= b.im);
}
MLX_COMPLEX bool operator>(complex64 a, complex64 b) {
  return b < a;
}
MLX_COMPLEX bool operator>=(complex64 a, complex64 b) {
  return b <= a;
}

#undef MLX_COMPLEX

}  // namespace mlx::core::cuda
