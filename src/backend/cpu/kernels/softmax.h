// Softmax and log-sum-exp over contiguous rows of float16, bfloat16, float32
// or float64, computed in float32 (float64 in itself).
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"

MLX_ISA_KERNEL(
    void,
    softmax_rows,
    (const void* x, void* y, size_t rows, size_t n, mlx::core::Dtype dtype))

// log(sum(exp(x))) of a row is max + log(sum): the largest element and the sum
// of exp(x - max), as doubles. A row can be taken in parts.
MLX_ISA_KERNEL(
    void,
    logsumexp_row,
    (const void* x, size_t n, double* max, double* sum, mlx::core::Dtype dtype))
