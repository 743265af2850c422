// Maximum and minimum of numbers as the reductions need them: NaN when either
// is NaN, complex numbers in lexicographic order, limits as neutral elements.
#pragma once

#include "backend/cpu/kernels/reduce_loops.h"

namespace mlx::core::cpu::MLX_ISA {

MLX_INLINE bool is_nan(Complex x) {
  return x.re != x.re || x.im != x.im;
}
template <typename A>
MLX_INLINE bool is_nan(A x) {
  return x != x;
}

template <typename A>
MLX_INLINE A highest() {
  if constexpr (A(-1) > A(0)) {
    return A(-1);
  } else {
    return A((UIntFor<A>(1) << (sizeof(A) * 8 - 1)) - 1);
  }
}
template <>
MLX_INLINE float highest<float>() {
  return __builtin_inff();
}
template <>
MLX_INLINE double highest<double>() {
  return __builtin_inf();
}
template <>
MLX_INLINE Complex highest<Complex>() {
  return {__builtin_inff(), __builtin_inff()};
}

template <typename A>
MLX_INLINE A lowest() {
  if constexpr (A(-1) > A(0)) {
    return A(0);
  } else {
    return A(UIntFor<A>(1) << (sizeof(A) * 8 - 1));
  }
}
template <>
MLX_INLINE float lowest<float>() {
  return -__builtin_inff();
}
template <>
MLX_INLINE double lowest<double>() {
  return -__builtin_inf();
}
template <>
MLX_INLINE Complex lowest<Complex>() {
  return {-__builtin_inff(), -__builtin_inff()};
}

struct Max {
  template <typename A>
  static MLX_INLINE A neutral() {
    return lowest<A>();
  }
  template <typename T>
  static MLX_INLINE Vec<T> of(Vec<T> a, Vec<T> b) {
    return maximum(a, b);
  }
  static MLX_INLINE Complex of(Complex a, Complex b) { return one(a, b); }
  template <typename A>
  static MLX_INLINE A one(A a, A b) {
    return is_nan(a) || a > b ? a : b;
  }
  /// Whether a comes before b; equal elements do not beat each other.
  template <typename A>
  static MLX_INLINE bool beats(A a, A b) {
    return (a > b) | (is_nan(a) & !is_nan(b));
  }
};

struct Min {
  template <typename A>
  static MLX_INLINE A neutral() {
    return highest<A>();
  }
  template <typename T>
  static MLX_INLINE Vec<T> of(Vec<T> a, Vec<T> b) {
    return minimum(a, b);
  }
  static MLX_INLINE Complex of(Complex a, Complex b) { return one(a, b); }
  template <typename A>
  static MLX_INLINE A one(A a, A b) {
    return is_nan(a) || a < b ? a : b;
  }
  template <typename A>
  static MLX_INLINE bool beats(A a, A b) {
    return (a < b) | (is_nan(a) & !is_nan(b));
  }
};

}  // namespace mlx::core::cpu::MLX_ISA
