// Running products. Integers wrap.
#include "backend/cpu/kernels/scan_loops.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

struct Prod {
  template <typename A>
  static MLX_INLINE A neutral() {
    return A(1);
  }
  template <typename V>
  static MLX_INLINE V of(V a, V b) {
    return a * b;
  }
};

}  // namespace

ScanFn scan_prod_loop(Dtype dtype) {
  return scans::loop<Prod, false>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
