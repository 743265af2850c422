// Block routines for the 64-bit integers.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

BlockFn int64_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<int64_t>>(op, scalar_mask);
}
BlockFn uint64_block(ElementwiseOp op, unsigned scalar_mask) {
  return find_block<Vec<uint64_t>>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
