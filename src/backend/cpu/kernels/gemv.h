// Products with at most eight rows (or columns): every weight is read once, at
// the speed of memory, and used for all rows while it is in a register.
#pragma once

#include "backend/cpu/kernels/gemm.h"

namespace mlx::core::cpu {

inline constexpr int64_t kGemvRows = 8;

}  // namespace mlx::core::cpu

/// Lines of any strides as float (double for float64), one after the other.
MLX_ISA_KERNEL(
    void,
    gemv_rows,
    (const GemmSource& source, int64_t lines, int64_t depth, void* to))

/// sums[r * row_stride + i * line_stride] = dot(x[r], w[first + i]) for
/// i < lines and r < rows <= 8. x comes from gemv_rows. One stride of w is 1.
MLX_ISA_KERNEL(
    void,
    gemv_lines,
    (const GemmSource& w,
     const void* x,
     int64_t rows,
     int64_t first,
     int64_t lines,
     int64_t depth,
     void* sums,
     int64_t row_stride,
     int64_t line_stride))
