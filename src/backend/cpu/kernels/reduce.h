// Raw loops of the reductions. The array-level code cuts the work into fixed
// blocks, so that results depend neither on the number of threads nor on who
// takes which block, and combines the blocks' results by the same loops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"
#include "ops/reduce_type.h"

namespace mlx::core::cpu {

/// Over `rows` rows of `n` contiguous elements, row r at x + r * row_stride
/// (in elements). The results are of type reduce_accumulator.
using ReduceFn = void (*)(
    const void* x, int64_t row_stride, size_t rows, size_t n, void* out);

struct ReduceLoops {
  /// out[r] combines row r; the neutral element for n = 0.
  ReduceFn rows;
  /// out[c] combines column c.
  ReduceFn columns;
};

/// The position of the first extreme element of a row, and the element.
using ArgReduceFn = uint32_t (*)(const void* x, size_t n);

}  // namespace mlx::core::cpu

MLX_ISA_KERNEL(ReduceLoops, reduce_sum_loops, (Dtype dtype))
MLX_ISA_KERNEL(ReduceLoops, reduce_prod_loops, (Dtype dtype))
MLX_ISA_KERNEL(ReduceLoops, reduce_max_loops, (Dtype dtype))
MLX_ISA_KERNEL(ReduceLoops, reduce_min_loops, (Dtype dtype))
MLX_ISA_KERNEL(ReduceLoops, reduce_logic_loops, (bool any, Dtype dtype))
// n >= 1 contiguous elements. A NaN counts as extreme, as in NumPy.
MLX_ISA_KERNEL(ArgReduceFn, arg_reduce_loop, (bool largest, Dtype dtype))
