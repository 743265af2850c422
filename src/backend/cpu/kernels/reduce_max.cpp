// Maxima.
#include "backend/cpu/kernels/reduce_extremes.h"

namespace mlx::core::cpu::MLX_ISA {

ReduceLoops reduce_max_loops(Dtype dtype) {
  return extreme_loops<Max>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
