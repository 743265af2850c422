// Block routines for float32.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

BlockFn float32_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<float>>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
