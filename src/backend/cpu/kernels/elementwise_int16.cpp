// Block routines for the 16-bit integers.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

BlockFn int16_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<int16_t>>(op, scalar_mask);
}
BlockFn uint16_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<uint16_t>>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
