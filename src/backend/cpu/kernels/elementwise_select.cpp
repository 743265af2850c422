// The look-up over all types, and select, which depends on element size only.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

BlockFn select_of_size(size_t item_size, unsigned scalar_mask) {
  switch (item_size) {
    case 1:
      return find_select<Vec<uint8_t>>(scalar_mask);
    case 2:
      return find_select<Vec<uint16_t>>(scalar_mask);
    case 4:
      return find_select<Vec<uint32_t>>(scalar_mask);
    default:
      return find_select<Vec<uint64_t>>(scalar_mask);
  }
}

}  // namespace

BlockFn elementwise_block(
    ElementwiseOp op, Dtype compute, unsigned scalar_mask) {
  if (op == ElementwiseOp::select) {
    return select_of_size(compute.size(), scalar_mask);
  }
  switch (compute.val()) {
    case Dtype::Val::bool_:
      return bool_block(op, scalar_mask);
    case Dtype::Val::uint8:
      return uint8_block(op, scalar_mask);
    case Dtype::Val::uint16:
      return uint16_block(op, scalar_mask);
    case Dtype::Val::uint32:
      return uint32_block(op, scalar_mask);
    case Dtype::Val::uint64:
      return uint64_block(op, scalar_mask);
    case Dtype::Val::int8:
      return int8_block(op, scalar_mask);
    case Dtype::Val::int16:
      return int16_block(op, scalar_mask);
    case Dtype::Val::int32:
      return int32_block(op, scalar_mask);
    case Dtype::Val::int64:
      return int64_block(op, scalar_mask);
    case Dtype::Val::float32:
      return float32_block(op, scalar_mask);
    case Dtype::Val::float64:
      return float64_block(op, scalar_mask);
    case Dtype::Val::complex64:
      return complex64_block(op, scalar_mask);
    case Dtype::Val::float16:
      return float16_block(op, scalar_mask);
    case Dtype::Val::bfloat16:
      return bfloat16_block(op, scalar_mask);
  }
  return nullptr;
}

}  // namespace mlx::core::cpu::MLX_ISA
