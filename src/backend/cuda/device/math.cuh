// Functions that the formulas of ops/elementwise.def name, for one number:
// float, double, integers, bool (as Truth) and complex64. Float functions are
// within the errors that the CPU's state; the toolkit's own where these do.
// Integers follow one rule: division rounds down, anything divided by zero is
// 0, powers wrap, a negative exponent gives 0. The long and rare ones are in
// math_rare.cuh, so that few texts of fused parts have to bring them.
#pragma once

#include <concepts>

#include "backend/cuda/device/math_core.cuh"
#include "backend/cuda/device/math_exp.cuh"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

/// bool in formulas: + is or, - is exclusive or, * is and.
struct Truth {
  bool v;

  Truth() = default;
  __device__ __forceinline__ explicit Truth(bool x) : v(x) {}
  __device__ __forceinline__ explicit operator bool() const { return v; }

#define MLX_TRUTH(op, how)                                                \
  friend __device__ __forceinline__ Truth operator op(Truth x, Truth y) { \
    return Truth(x.v how y.v);                                            \
  }
  MLX_TRUTH(+, |)
  MLX_TRUTH(-, ^)
  MLX_TRUTH(*, &)
  MLX_TRUTH(&, &)
  MLX_TRUTH(|, |)
  MLX_TRUTH(^, ^)
#undef MLX_TRUTH
  friend __device__ __forceinline__ Truth operator~(Truth x) {
    return Truth(!x.v);
  }
#define MLX_TRUTH(op)                                                    \
  friend __device__ __forceinline__ bool operator op(Truth x, Truth y) { \
    return x.v op y.v;                                                   \
  }
  MLX_TRUTH(==)
  MLX_TRUTH(!=)
  MLX_TRUTH(<)
  MLX_TRUTH(<=)
  MLX_TRUTH(>)
  MLX_TRUTH(>=)
#undef MLX_TRUTH
};

namespace math {

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <typename T>
concept Whole = Integer<T> || std::same_as<T, Truth>;
template <typename T>
concept Real = std::floating_point<T> || Whole<T>;

#define MLX_MATH __device__ __forceinline__
/// For what is long or rare: one copy a kernel, called.
#define MLX_MATH_CALLED inline __device__ __noinline__

inline constexpr float kInfinity = __builtin_huge_valf();

MLX_MATH float nan() {
  return __int_as_float(0x7fc00000);
}

// Signs and rounding

MLX_MATH float abs(float x) {
  return ::fabsf(x);
}
MLX_MATH double abs(double x) {
  return ::fabs(x);
}
/// The smallest signed integer stays as it is.
template <Integer T>
MLX_MATH T abs(T x) {
  if constexpr (std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return x < T(0) ? static_cast<T>(U(0) - static_cast<U>(x)) : x;
  } else {
    return x;
  }
}

/// Zero of either sign gives 0, NaN itself.
template <std::floating_point T>
MLX_MATH T sign(T x) {
  return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x + T(0));
}
template <Integer T>
MLX_MATH T sign(T x) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>((x > T(0)) - (x < T(0)));
  } else {
    return x != T(0) ? T(1) : T(0);
  }
}

#define MLX_ROUNDING(name, function) \
  MLX_MATH float name(float x) {     \
    return ::function##f(x);         \
  }                                  \
  MLX_MATH double name(double x) {   \
    return ::function(x);            \
  }                                  \
  template <Whole T>                 \
  MLX_MATH T name(T x) {             \
    return x;                        \
  }
MLX_ROUNDING(ceil, ceil)
MLX_ROUNDING(floor, floor)
MLX_ROUNDING(round, rint)
MLX_ROUNDING(trunc, trunc)
#undef MLX_ROUNDING

template <Real T>
MLX_MATH T conjugate(T x) {
  return x;
}
template <Real T>
MLX_MATH T real(T x) {
  return x;
}
template <Real T>
MLX_MATH T imag(T) {
  return T(0);
}

// Functions of one number: float's, then double's by the toolkit

#define MLX_FUNCTION(name, function) \
  MLX_MATH float name(float x) {     \
    return ::function##f(x);         \
  }                                  \
  MLX_MATH double name(double x) {   \
    return ::function(x);            \
  }
MLX_FUNCTION(sqrt, sqrt)
MLX_FUNCTION(log, log)
MLX_FUNCTION(erf, erf)
MLX_FUNCTION(tanh, tanh)
#undef MLX_FUNCTION
MLX_MATH double exp(double x) {
  return ::exp(x);
}
MLX_MATH double expm1(double x) {
  return ::expm1(x);
}

#define MLX_THROUGH_DOUBLE(name, function, value) \
  MLX_MATH float name(float given) {              \
    double x = given;                             \
    return static_cast<float>(value);             \
  }                                               \
  MLX_MATH_CALLED double name(double x) {         \
    return ::function(x);                         \
  }
MLX_THROUGH_DOUBLE(log2, log2, core::log(x) * 0x1.71547652b82fep+0)
MLX_THROUGH_DOUBLE(log10, log10, core::log(x) * 0x1.bcb7b1526e50ep-2)
#undef MLX_THROUGH_DOUBLE

/// Correctly rounded root and quotient: 1.5 ulp.
template <std::floating_point T>
MLX_MATH T rsqrt(T x) {
  return T(1) / math::sqrt(x);
}

MLX_MATH float log1p(float x) {
  return x == 0.0f ? x : static_cast<float>(core::log1p(x));  // keeps -0
}
MLX_MATH_CALLED double log1p(double x) {
  return ::log1p(x);
}

/// 2.41 ulp.
template <std::floating_point T>
MLX_MATH T sigmoid(T x) {
  T e = math::exp(-math::abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

MLX_MATH float erfinv(float x) {
  return ::erfinvf(x);
}
MLX_MATH_CALLED double erfinv(double x) {
  return ::erfinv(x);
}

// Choice and comparison

/// NaN when either is NaN.
template <typename T>
MLX_MATH T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
MLX_MATH T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

template <typename T>
MLX_MATH bool equal_nan(T a, T b) {
  return a == b || (a != a && b != b);
}

/// max + log1p(exp(-|a - b|)). Equal operands give a + log(2), infinities
/// included.
MLX_MATH float logaddexp(float a, float b) {
  float difference = a == b ? 0.0f : ::fabsf(a - b);
  return math::maximum(a, b) + ::log1pf(::expf(-difference));
}
MLX_MATH_CALLED double logaddexp(double a, double b) {
  double difference = a == b ? 0.0 : ::fabs(a - b);
  return math::maximum(a, b) + ::log1p(::exp(-difference));
}

/// b where a holds, else c.
template <typename T>
MLX_MATH T select(bool a, T b, T c) {
  return a ? b : c;
}

MLX_MATH Truth abs(Truth x) {
  return x;
}
MLX_MATH Truth sign(Truth x) {
  return x;
}

}  // namespace math

}  // namespace mlx::core::cuda
