// Running sums. Integers wrap.
#include "backend/cpu/kernels/scan_loops.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

struct Sum {
  template <typename A>
  static MLX_INLINE A neutral() {
    return A(0);
  }
  template <typename V>
  static MLX_INLINE V of(V a, V b) {
    return a + b;
  }
};

}  // namespace

namespace scans {

template <>
struct Carry<Sum, float> {
  double total = 0;

  MLX_INLINE float value() const { return float(total); }
  MLX_INLINE void add(float x) { total += x; }
};

}  // namespace scans

ScanFn scan_sum_loop(Dtype dtype) {
  return scans::loop<Sum, false>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
