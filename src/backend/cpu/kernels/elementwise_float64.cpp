// Block routines for float64.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

BlockFn float64_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<double>>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
