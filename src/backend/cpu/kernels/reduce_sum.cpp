// Sums. Integers wrap.
#include "backend/cpu/kernels/reduce_loops.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename A>
MLX_INLINE A wrapping_sum(A a, A b) {
  return A(UIntFor<A>(a) + UIntFor<A>(b));
}
MLX_INLINE float wrapping_sum(float a, float b) {
  return a + b;
}
MLX_INLINE double wrapping_sum(double a, double b) {
  return a + b;
}
MLX_INLINE Complex wrapping_sum(Complex a, Complex b) {
  return a + b;
}

struct Sum {
  template <typename A>
  static MLX_INLINE A neutral() {
    return A(0);
  }
  template <typename V>
  static MLX_INLINE V of(V a, V b) {
    return a + b;
  }
  template <typename A>
  static MLX_INLINE A one(A a, A b) {
    return wrapping_sum(a, b);
  }
};

}  // namespace

ReduceLoops reduce_sum_loops(Dtype dtype) {
  return arithmetic_loops<Sum>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
