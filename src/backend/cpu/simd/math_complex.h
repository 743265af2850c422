// complex64 one number at a time: Complex with its operators and functions, by
// closed formulas or C's complex functions of libm. Products and quotients are
// computed in double, where float's range neither overflows nor underflows.
#pragma once

#include "backend/cpu/simd/math_core.h"

namespace mlx::core::cpu::MLX_ISA {

/// Same layout as complex64_t, without std:: templates (see vec.h's head).
struct Complex {
  static constexpr int size = 1;
  using Element = Complex;

  float re, im;

  Complex() = default;
  constexpr Complex(float r, float i) : re(r), im(i) {}
  constexpr explicit Complex(float r) : re(r), im(0.0f) {}

  static MLX_INLINE Complex load(const Complex* p) { return *p; }
  MLX_INLINE void store(Complex* p) const { *p = *this; }

  friend MLX_INLINE Complex operator+(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend MLX_INLINE Complex operator-(Complex a, Complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend MLX_INLINE Complex operator-(Complex a) { return {-a.re, -a.im}; }
  // The four products are exact in double, so that neither the operands' order
  // nor the compiler's choice between fused and separate operations shows.
  friend MLX_INLINE Complex operator*(Complex a, Complex b) {
    double c = b.re, d = b.im;
    return {
        static_cast<float>(a.re * c - a.im * d),
        static_cast<float>(a.re * d + a.im * c)};
  }
  friend MLX_INLINE Complex operator/(Complex a, Complex b) {
    double u = b.re, v = b.im, norm = u * u + v * v;
    if (norm == 0) {  // infinities by parts, as NumPy
      return {a.re / b.re, a.im / b.re};
    }
    Complex q{
        static_cast<float>((a.re * u + a.im * v) / norm),
        static_cast<float>((a.im * u - a.re * v) / norm)};
    return q.re != q.re && q.im != q.im ? quotient_at_infinity(a, b) : q;
  }

  /// As annex G of the C standard: finite / infinite is zero, infinite / finite
  /// infinite, though a part be NaN.
  static MLX_INLINE Complex quotient_at_infinity(Complex a, Complex b) {
    auto infinite = [](Complex x) {
      return __builtin_isinf(x.re) || __builtin_isinf(x.im);
    };
    auto finite = [](Complex x) {
      return __builtin_isfinite(x.re) && __builtin_isfinite(x.im);
    };
    auto direction = [](float x) {
      return __builtin_copysignf(__builtin_isinf(x) ? 1.0f : 0.0f, x);
    };
    float size;
    if (infinite(a) && finite(b)) {
      size = __builtin_inff();
      a = {direction(a.re), direction(a.im)};
    } else if (finite(a) && infinite(b)) {
      size = 0.0f;
      b = {direction(b.re), direction(b.im)};
    } else {
      size = __builtin_nanf("");
    }
    return {
        size * (a.re * b.re + a.im * b.im), size * (a.im * b.re - a.re * b.im)};
  }

  friend constexpr bool operator==(Complex a, Complex b) {
    return a.re == b.re && a.im == b.im;
  }
  friend constexpr bool operator!=(Complex a, Complex b) { return !(a == b); }
  // Lexicographic order.
  friend MLX_INLINE bool operator<(Complex a, Complex b) {
    return a.re < b.re || (a.re == b.re && a.im < b.im);
  }
  friend MLX_INLINE bool operator<=(Complex a, Complex b) {
    return a.re < b.re || (a.re == b.re && a.im <= b.im);
  }
  friend MLX_INLINE bool operator>(Complex a, Complex b) { return b < a; }
  friend MLX_INLINE bool operator>=(Complex a, Complex b) { return b <= a; }
};

namespace math {

namespace detail {

MLX_INLINE bool is_nan(Complex x) {
  return x.re != x.re || x.im != x.im;
}
MLX_INLINE _Complex float to_c(Complex x) {
  _Complex float c;
  __real__ c = x.re;
  __imag__ c = x.im;
  return c;
}
MLX_INLINE Complex from_c(_Complex float c) {
  return {__real__ c, __imag__ c};
}
/// The squares of floats neither overflow nor vanish in double.
MLX_INLINE double magnitude(double re, double im) {
  if (__builtin_isinf(re) || __builtin_isinf(im)) {
    return __builtin_inf();  // also next to NaN
  }
  return __builtin_sqrt(re * re + im * im);
}

}  // namespace detail

MLX_INLINE float abs(Complex x) {
  return static_cast<float>(detail::magnitude(x.re, x.im));
}
MLX_INLINE float real(Complex x) {
  return x.re;
}
MLX_INLINE float imag(Complex x) {
  return x.im;
}
MLX_INLINE Complex conjugate(Complex x) {
  return {x.re, -x.im};
}
MLX_INLINE Complex round(Complex x) {
  return {__builtin_rintf(x.re), __builtin_rintf(x.im)};
}
MLX_INLINE Complex sign(Complex x) {
  double m = detail::magnitude(x.re, x.im);
  if (m == 0) {
    return {0.0f, 0.0f};
  }
  return {static_cast<float>(x.re / m), static_cast<float>(x.im / m)};
}

#define MLX_COMPLEX_BY_LIBM(name, function)           \
  MLX_INLINE Complex name(Complex x) {                \
    return detail::from_c(function(detail::to_c(x))); \
  }
MLX_COMPLEX_BY_LIBM(sqrt, __builtin_csqrtf)
MLX_COMPLEX_BY_LIBM(exp, __builtin_cexpf)
MLX_COMPLEX_BY_LIBM(log, __builtin_clogf)
MLX_COMPLEX_BY_LIBM(sin, __builtin_csinf)
MLX_COMPLEX_BY_LIBM(cos, __builtin_ccosf)
MLX_COMPLEX_BY_LIBM(tan, __builtin_ctanf)
MLX_COMPLEX_BY_LIBM(arcsin, __builtin_casinf)
MLX_COMPLEX_BY_LIBM(arccos, __builtin_cacosf)
MLX_COMPLEX_BY_LIBM(arctan, __builtin_catanf)
MLX_COMPLEX_BY_LIBM(sinh, __builtin_csinhf)
MLX_COMPLEX_BY_LIBM(cosh, __builtin_ccoshf)
MLX_COMPLEX_BY_LIBM(tanh, __builtin_ctanhf)
MLX_COMPLEX_BY_LIBM(arcsinh, __builtin_casinhf)
MLX_COMPLEX_BY_LIBM(arccosh, __builtin_cacoshf)
MLX_COMPLEX_BY_LIBM(arctanh, __builtin_catanhf)
#undef MLX_COMPLEX_BY_LIBM

MLX_INLINE Complex rsqrt(Complex x) {
  return Complex(1.0f, 0.0f) / sqrt(x);
}
MLX_INLINE Complex log2(Complex x) {
  Complex y = log(x);
  return {y.re * 0x1.715476p+0f, y.im * 0x1.715476p+0f};
}
MLX_INLINE Complex log10(Complex x) {
  Complex y = log(x);
  return {y.re * 0x1.bcb7b2p-2f, y.im * 0x1.bcb7b2p-2f};
}
/// log|1 + x| = log1p(|x|^2 + 2 re) / 2, which keeps small x.
MLX_INLINE Complex log1p(Complex x) {
  double re = x.re, im = x.im;
  double real = 0.5 * __builtin_log1p(re * (2.0 + re) + im * im);
  return {
      static_cast<float>(real),
      static_cast<float>(__builtin_atan2(im, 1.0 + re))};
}
/// exp(b log a) in double; 0^0 = 1 and 0^b = 0 for a positive real part.
MLX_INLINE Complex power(Complex a, Complex b) {
  if (b.re == 0 && b.im == 0) {
    return {1.0f, 0.0f};
  }
  if (a.re == 0 && a.im == 0) {
    float nan = __builtin_nanf("");
    return b.re > 0 ? Complex(0.0f, 0.0f) : Complex(nan, nan);
  }
  double length = __builtin_log(detail::magnitude(a.re, a.im));
  double angle = __builtin_atan2(a.im, a.re);
  double r = __builtin_exp(b.re * length - b.im * angle);
  double t = b.im * length + b.re * angle;
  return {
      static_cast<float>(r * __builtin_cos(t)),
      static_cast<float>(r * __builtin_sin(t))};
}
MLX_INLINE Complex maximum(Complex a, Complex b) {
  return detail::is_nan(a) || (!detail::is_nan(b) && a > b) ? a : b;
}
MLX_INLINE Complex minimum(Complex a, Complex b) {
  return detail::is_nan(a) || (!detail::is_nan(b) && a < b) ? a : b;
}
MLX_INLINE Complex logaddexp(Complex a, Complex b) {
  if (detail::is_nan(a) || detail::is_nan(b)) {
    float nan = __builtin_nanf("");
    return {nan, nan};
  }
  Complex larger = a > b ? a : b, smaller = a > b ? b : a;
  if (larger.re == smaller.re && __builtin_isinf(larger.re)) {
    return larger;
  }
  return larger + log1p(exp(smaller - larger));
}
MLX_INLINE bool equal_nan(Complex a, Complex b) {
  return a == b || (detail::is_nan(a) && detail::is_nan(b));
}

}  // namespace math

}  // namespace mlx::core::cpu::MLX_ISA
