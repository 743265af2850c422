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

struct ArgReduceLoops {
  /// The position of the first extreme of n >= 1 contiguous elements.
  uint32_t (*row)(const void* x, size_t n);
  /// The same for each of n neighbouring columns, rows `row_stride` apart.
  void (*columns)(
      const void* x, int64_t row_stride, size_t rows, size_t n, uint32_t* out);
};

}  // namespace mlx::core::cpu

MLX_ISA_KERNEL(ReduceLoops, reduce_sum_loops, (Dtype dtype))
// out[r] is the sum of the products of row r of x and of y: the bits of the
// products' sum by reduce_sum_loops.
MLX_ISA_KERNEL(
    void,
    sum_products,
    (const float* x, const float* y, size_t rows, size_t n, float* out))
MLX_ISA_KERNEL(ReduceLoops, reduce_prod_loops, (Dtype dtype))
MLX_ISA_KERNEL(ReduceLoops, reduce_max_loops, (Dtype dtype))
MLX_ISA_KERNEL(ReduceLoops, reduce_min_loops, (Dtype dtype))
MLX_ISA_KERNEL(ReduceLoops, reduce_logic_loops, (bool any, Dtype dtype))
// A NaN counts as extreme, as in NumPy.
MLX_ISA_KERNEL(ArgReduceLoops, arg_reduce_loops, (bool largest, Dtype dtype))
