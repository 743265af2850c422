// Running maxima.
#include "backend/cpu/kernels/reduce_extremes.h"
#include "backend/cpu/kernels/scan_loops.h"

namespace mlx::core::cpu::MLX_ISA {

ScanFn scan_max_loop(Dtype dtype) {
  return scans::loop<Max, true>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
