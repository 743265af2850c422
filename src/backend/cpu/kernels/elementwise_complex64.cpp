// Block routines for complex64, one number at a time.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

BlockFn complex64_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Complex>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
