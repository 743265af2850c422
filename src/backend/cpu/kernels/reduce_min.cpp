// Minima.
#include "backend/cpu/kernels/reduce_extremes.h"

namespace mlx::core::cpu::MLX_ISA {

ReduceLoops reduce_min_loops(Dtype dtype) {
  return extreme_loops<Min>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
