// Block routines for bool and the 8-bit integers.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

BlockFn bool_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<bool>>(op, scalar_mask);
}
BlockFn int8_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<int8_t>>(op, scalar_mask);
}
BlockFn uint8_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<uint8_t>>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
