// Running minima.
#include "backend/cpu/kernels/reduce_extremes.h"
#include "backend/cpu/kernels/scan_loops.h"

namespace mlx::core::cpu::MLX_ISA {

ScanFn scan_min_loop(Dtype dtype) {
  return scans::loop<Min, true>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
