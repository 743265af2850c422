// Block routines for the 32-bit integers.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

BlockFn int32_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<int32_t>>(op, scalar_mask);
}
BlockFn uint32_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<uint32_t>>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
