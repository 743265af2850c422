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

/// Products of two rows, rounded as products that are stored.
struct ProductsOf {
  using V = Vec<float>;
  const float* x;
  const float* y;

  static MLX_INLINE V product(V a, V b) {
    V p = a * b;
    // Or the compiler makes one operation of it and the sum.
    asm("" : "+v"(p.v));
    return p;
  }
  MLX_INLINE V at(size_t i) const {
    return product(V::load(x + i), V::load(y + i));
  }
  MLX_INLINE void rest(size_t i, size_t n, float* to) const {
    product(V::load_partial(x + i, n), V::load_partial(y + i, n)).store(to);
  }
};

}  // namespace

void sum_products(
    const float* x, const float* y, size_t rows, size_t n, float* out) {
  for (size_t r = 0; r < rows; ++r) {
    out[r] =
        detail::reduce_any_row<Sum, float>(ProductsOf{x + r * n, y + r * n}, n);
  }
}

ReduceLoops reduce_sum_loops(Dtype dtype) {
  return arithmetic_loops<Sum>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
