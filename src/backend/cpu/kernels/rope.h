// Rotation of feature pairs by angles given as cosines and sines.
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"

namespace mlx::core::cpu {

struct RopeRows {
  const void* in;
  void* out;
  /// In elements from row to row.
  int64_t in_stride;
  int64_t out_stride;
  size_t rows;
  size_t features;
  /// The first 2 * half features turn, the others are copied.
  size_t half;
  bool traditional;
  const float* cosines;
  const float* sines;
  Dtype dtype;
};

}  // namespace mlx::core::cpu

// All rows turn by the same angles.
MLX_ISA_KERNEL(void, rope_rows, (const RopeRows& args))
