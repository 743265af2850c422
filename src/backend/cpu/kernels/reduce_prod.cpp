// Products. Integers wrap.
#include "backend/cpu/kernels/reduce_loops.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename A>
MLX_INLINE A wrapping_product(A a, A b) {
  return A(UIntFor<A>(a) * UIntFor<A>(b));
}
MLX_INLINE float wrapping_product(float a, float b) {
  return a * b;
}
MLX_INLINE double wrapping_product(double a, double b) {
  return a * b;
}
MLX_INLINE Complex wrapping_product(Complex a, Complex b) {
  return a * b;
}

struct Prod {
  template <typename A>
  static MLX_INLINE A neutral() {
    return A(1);
  }
  template <typename V>
  static MLX_INLINE V of(V a, V b) {
    return a * b;
  }
  template <typename A>
  static MLX_INLINE A one(A a, A b) {
    return wrapping_product(a, b);
  }
};

}  // namespace

ReduceLoops reduce_prod_loops(Dtype dtype) {
  return arithmetic_loops<Prod>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
