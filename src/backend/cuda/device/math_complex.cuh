// The functions of math.cuh for complex64. They are computed in double from
// the parts, so that float's range neither overflows nor vanishes on the way;
// infinities, NaN and the sides of branch cuts (told by the sign of zero) are
// those of annex G of the C standard. The inverse functions follow Kahan,
// "Branch cuts for complex elementary functions".
#pragma once

#include "backend/cuda/device/complex.cuh"
#include "backend/cuda/device/math_rare.cuh"

namespace mlx::core::cuda::math {

namespace core {

/// A complex number in double, on the way.
struct Wide {
  double re, im;

  __device__ __forceinline__ Wide(double re, double im) : re(re), im(im) {}
  __device__ __forceinline__ explicit Wide(complex64 x) : re(x.re), im(x.im) {}
  __device__ __forceinline__ complex64 narrow() const {
    return {static_cast<float>(re), static_cast<float>(im)};
  }
  /// i times the number, and divided by i.
  __device__ __forceinline__ Wide turned() const { return {-im, re}; }
  __device__ __forceinline__ Wide turned_back() const { return {im, -re}; }
};

__device__ __forceinline__ bool is_infinite(double x) {
  return ::fabs(x) == infinity();
}
__device__ __forceinline__ bool is_finite(double x) {
  return ::fabs(x) < infinity();
}
__device__ __forceinline__ bool is_nan(complex64 x) {
  return x.re != x.re || x.im != x.im;
}

/// The squares of floats neither overflow nor vanish in double.
__device__ __forceinline__ double magnitude(double re, double im) {
  if (is_infinite(re) || is_infinite(im)) {
    return infinity();  // also next to NaN
  }
  return ::sqrt(re * re + im * im);
}

inline __device__ __noinline__ Wide sqrt(Wide z) {
  if (is_infinite(z.im)) {
    return {infinity(), z.im};
  }
  if (z.re == -infinity()) {
    return {z.im == z.im ? 0.0 : z.im, ::copysign(infinity(), z.im)};
  }
  if (z.re == infinity()) {
    return {z.re, z.im == z.im ? ::copysign(0.0, z.im) : z.im};
  }
  if (z.re == 0.0 && z.im == 0.0) {
    return {0.0, z.im};
  }
  double t = ::sqrt(0.5 * (::fabs(z.re) + magnitude(z.re, z.im)));
  double other = z.im / (t + t);
  return z.re >= 0.0 ? Wide(t, other)
                     : Wide(::fabs(other), ::copysign(t, z.im));
}

inline __device__ __noinline__ Wide exp(Wide z) {
  double e = ::exp(z.re);
  if (z.im == 0.0) {
    return {e, z.im};
  }
  if (!is_finite(z.im) && is_infinite(z.re)) {
    return z.re > 0.0 ? Wide(e, nan()) : Wide(0.0, 0.0);
  }
  double s, c;
  ::sincos(z.im, &s, &c);
  return {e * c, e * s};
}

inline __device__ __noinline__ Wide log(Wide z) {
  return {::log(magnitude(z.re, z.im)), ::atan2(z.im, z.re)};
}

inline __device__ __noinline__ Wide sinh(Wide z) {
  if (z.im == 0.0) {
    return {::sinh(z.re), z.im};
  }
  double s, c;
  ::sincos(z.im, &s, &c);
  if (z.re == 0.0) {
    return {z.re, s};
  }
  if (is_infinite(z.re) && !is_finite(z.im)) {
    return {z.re, nan()};
  }
  return {::sinh(z.re) * c, ::cosh(z.re) * s};
}

inline __device__ __noinline__ Wide cosh(Wide z) {
  if (z.im == 0.0) {
    return {::cosh(z.re), z.re == z.re ? z.im * ::copysign(1.0, z.re) : 0.0};
  }
  double s, c;
  ::sincos(z.im, &s, &c);
  if (z.re == 0.0) {
    return {c, s == s ? z.re * s : 0.0};
  }
  if (is_infinite(z.re) && !is_finite(z.im)) {
    return {infinity(), nan()};
  }
  return {::cosh(z.re) * c, ::sinh(z.re) * s};
}

/// With t = tan(y), s = sinh(x), b = 1 + t^2: (b cosh(x) s + i t) / (1 + b
/// s^2).
inline __device__ __noinline__ Wide tanh(Wide z) {
  double x = z.re, y = z.im;
  if (is_infinite(x)) {
    double side = is_finite(y) ? ::sin(2.0 * y) : 0.0;
    return {::copysign(1.0, x), ::copysign(0.0, side)};
  }
  if (x != x && y == 0.0) {
    return z;
  }
  if (x == 0.0) {
    return {x, ::tan(y)};
  }
  if (::fabs(x) > 22.0) {
    double s, c;
    ::sincos(y, &s, &c);
    return {::copysign(1.0, x), 4.0 * s * c * ::exp(-2.0 * ::fabs(x))};
  }
  double t = ::tan(y), s = ::sinh(x), b = 1.0 + t * t;
  double scale = 1.0 + b * s * s;
  return {b * ::sqrt(1.0 + s * s) * s / scale, t / scale};
}

/// The imaginary part of conjugate(a) * b.
__device__ __forceinline__ double cross(Wide a, Wide b) {
  return a.re * b.im - a.im * b.re;
}

inline __device__ __noinline__ Wide arcsinh(Wide z) {
  if (is_infinite(z.re) || is_infinite(z.im)) {
    double angle = ::atan2(z.im, ::fabs(z.re));
    return {::copysign(infinity(), z.re), angle};
  }
  if (z.im == 0.0 && z.re != z.re) {
    return z;
  }
  // arcsinh(z) = -i arcsin(iz); a = sqrt(1 - iz), b = sqrt(1 + iz).
  Wide a = core::sqrt({1.0 + z.im, -z.re});
  Wide b = core::sqrt({1.0 - z.im, z.re});
  double real_of_product = a.re * b.re - a.im * b.im;
  return {::asinh(cross(a, b)), ::atan2(z.im, real_of_product)};
}

inline __device__ __noinline__ Wide arccos(Wide z) {
  if (is_infinite(z.re) || is_infinite(z.im)) {
    return {::atan2(::fabs(z.im), z.re), ::copysign(infinity(), -z.im)};
  }
  Wide a = core::sqrt({1.0 - z.re, -z.im});
  Wide b = core::sqrt({1.0 + z.re, z.im});
  return {2.0 * ::atan2(a.re, b.re), ::asinh(cross(b, a))};
}

inline __device__ __noinline__ Wide arccosh(Wide z) {
  if (is_infinite(z.re) || is_infinite(z.im)) {
    return {infinity(), ::atan2(z.im, z.re)};
  }
  Wide a = core::sqrt({z.re - 1.0, z.im});
  Wide b = core::sqrt({z.re + 1.0, z.im});
  return {::asinh(a.re * b.re + a.im * b.im), 2.0 * ::atan2(a.im, b.re)};
}

inline __device__ __noinline__ Wide arctanh(Wide z) {
  double x = ::fabs(z.re), y = z.im;
  if (is_infinite(z.re) || is_infinite(y)) {
    double quarter = ::copysign(0x1.921fb54442d18p+0, y);
    return {::copysign(0.0, z.re), y == y ? quarter : y};
  }
  if (z.re == 0.0) {
    return {z.re, ::atan(y)};
  }
  double re = 0.25 * ::log1p(4.0 * x / ((1.0 - x) * (1.0 - x) + y * y));
  double im = 0.5 * ::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y);
  return {::copysign(re, z.re), im};
}

}  // namespace core

MLX_MATH float abs(complex64 x) {
  return static_cast<float>(core::magnitude(x.re, x.im));
}
MLX_MATH float real(complex64 x) {
  return x.re;
}
MLX_MATH float imag(complex64 x) {
  return x.im;
}
MLX_MATH complex64 conjugate(complex64 x) {
  return {x.re, -x.im};
}
MLX_MATH complex64 round(complex64 x) {
  return {::rintf(x.re), ::rintf(x.im)};
}
MLX_MATH_CALLED complex64 sign(complex64 x) {
  double m = core::magnitude(x.re, x.im);
  if (m == 0.0) {
    return {0.0f, 0.0f};
  }
  return {static_cast<float>(x.re / m), static_cast<float>(x.im / m)};
}

MLX_MATH complex64 sqrt(complex64 x) {
  return core::sqrt(core::Wide(x)).narrow();
}
MLX_MATH complex64 rsqrt(complex64 x) {
  return complex64(1.0f, 0.0f) / sqrt(x);
}
MLX_MATH complex64 exp(complex64 x) {
  return core::exp(core::Wide(x)).narrow();
}
MLX_MATH complex64 log(complex64 x) {
  return core::log(core::Wide(x)).narrow();
}
MLX_MATH complex64 log2(complex64 x) {
  core::Wide y = core::log(core::Wide(x));
  return core::Wide(y.re * 0x1.71547652b82fep+0, y.im * 0x1.71547652b82fep+0)
      .narrow();
}
MLX_MATH complex64 log10(complex64 x) {
  core::Wide y = core::log(core::Wide(x));
  return core::Wide(y.re * 0x1.bcb7b1526e50ep-2, y.im * 0x1.bcb7b1526e50ep-2)
      .narrow();
}
/// log|1 + x| = log1p(|x|^2 + 2 re) / 2, which keeps small x.
MLX_MATH_CALLED complex64 log1p(complex64 x) {
  double re = x.re, im = x.im;
  return core::Wide(
             0.5 * ::log1p(re * (2.0 + re) + im * im), ::atan2(im, 1.0 + re))
      .narrow();
}

MLX_MATH complex64 sinh(complex64 x) {
  return core::sinh(core::Wide(x)).narrow();
}
MLX_MATH complex64 cosh(complex64 x) {
  return core::cosh(core::Wide(x)).narrow();
}
MLX_MATH complex64 tanh(complex64 x) {
  return core::tanh(core::Wide(x)).narrow();
}
// Functions of z by hyperbolic ones of iz.
MLX_MATH complex64 sin(complex64 x) {
  return core::sinh(core::Wide(x).turned()).turned_back().narrow();
}
MLX_MATH complex64 cos(complex64 x) {
  return core::cosh(core::Wide(x).turned()).narrow();
}
MLX_MATH complex64 tan(complex64 x) {
  return core::tanh(core::Wide(x).turned()).turned_back().narrow();
}

MLX_MATH complex64 arcsinh(complex64 x) {
  return core::arcsinh(core::Wide(x)).narrow();
}
MLX_MATH complex64 arccosh(complex64 x) {
  return core::arccosh(core::Wide(x)).narrow();
}
MLX_MATH complex64 arctanh(complex64 x) {
  return core::arctanh(core::Wide(x)).narrow();
}
MLX_MATH complex64 arcsin(complex64 x) {
  return core::arcsinh(core::Wide(x).turned()).turned_back().narrow();
}
MLX_MATH complex64 arccos(complex64 x) {
  return core::arccos(core::Wide(x)).narrow();
}
MLX_MATH complex64 arctan(complex64 x) {
  return core::arctanh(core::Wide(x).turned()).turned_back().narrow();
}

/// exp(b log a); 0^0 = 1 and 0^b = 0 for a positive real part.
MLX_MATH_CALLED complex64 power(complex64 a, complex64 b) {
  if (b.im == 0.0f && b.re == 2.0f) {
    return a * a;
  }
  if (b.re == 0.0f && b.im == 0.0f) {
    return {1.0f, 0.0f};
  }
  if (a.re == 0.0f && a.im == 0.0f) {
    return b.re > 0.0f ? complex64(0.0f, 0.0f) : complex64(nan(), nan());
  }
  core::Wide l = core::log(core::Wide(a));
  double r = ::exp(b.re * l.re - b.im * l.im);
  double s, c;
  ::sincos(b.im * l.re + b.re * l.im, &s, &c);
  return core::Wide(r * c, r * s).narrow();
}

MLX_MATH complex64 maximum(complex64 a, complex64 b) {
  return core::is_nan(a) || (!core::is_nan(b) && a > b) ? a : b;
}
MLX_MATH complex64 minimum(complex64 a, complex64 b) {
  return core::is_nan(a) || (!core::is_nan(b) && a < b) ? a : b;
}
MLX_MATH_CALLED complex64 logaddexp(complex64 a, complex64 b) {
  if (core::is_nan(a) || core::is_nan(b)) {
    return {nan(), nan()};
  }
  complex64 larger = a > b ? a : b, smaller = a > b ? b : a;
  if (larger.re == smaller.re && ::fabsf(larger.re) == kInfinity) {
    return larger;
  }
  return larger + math::log1p(math::exp(smaller - larger));
}

}  // namespace mlx::core::cuda::math
