// Raw loops of the running reductions over contiguous data. 16-bit floats add
// up in float32; running float32 sums carry the total in double from register
// to register, so that long sums stay accurate.
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"

namespace mlx::core::cpu {

/// n steps over rows of `cols` neighbouring elements, `stride` elements from
/// step to step. cols = 1 and stride = 1 is one row.
using ScanFn = void (*)(
    const void* x,
    void* y,
    size_t n,
    size_t cols,
    size_t stride,
    bool reverse,
    bool inclusive);

}  // namespace mlx::core::cpu

// Null for a type that the operation does not take.
MLX_ISA_KERNEL(mlx::core::cpu::ScanFn, scan_sum_loop, (mlx::core::Dtype dtype))
MLX_ISA_KERNEL(mlx::core::cpu::ScanFn, scan_prod_loop, (mlx::core::Dtype dtype))
MLX_ISA_KERNEL(mlx::core::cpu::ScanFn, scan_max_loop, (mlx::core::Dtype dtype))
MLX_ISA_KERNEL(mlx::core::cpu::ScanFn, scan_min_loop, (mlx::core::Dtype dtype))
MLX_ISA_KERNEL(
    mlx::core::cpu::ScanFn, scan_logaddexp_loop, (mlx::core::Dtype dtype))
