// RMS and layer normalisation of contiguous rows of float16, bfloat16, float32
// or float64, computed in float32 (float64 in itself). weight and bias, each
// may be null, have the type of x.
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"

namespace mlx::core::cpu {

struct NormRows {
  const void* x;
  const void* weight;
  const void* bias;
  void* y;
  size_t rows;
  size_t n;
  float eps;
};

}  // namespace mlx::core::cpu

MLX_ISA_KERNEL(
    void,
    rms_norm_rows,
    (const mlx::core::cpu::NormRows& rows, mlx::core::Dtype dtype))
MLX_ISA_KERNEL(
    void,
    layer_norm_rows,
    (const mlx::core::cpu::NormRows& rows, mlx::core::Dtype dtype))
