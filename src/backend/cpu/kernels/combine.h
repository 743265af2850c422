// Loops that bring values into memory where others are: the innermost part of
// scatter and of slice updates.
#pragma once

#include <cstdint>

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"
#include "ops/accumulate.h"

namespace mlx::core::cpu {

/// Strides and offsets in elements. `dst` and `src` do not overlap.
struct Combine {
  /// dst[i * ds] meets src[i * ss] for i in [0, n).
  void (*row)(void* dst, int64_t ds, const void* src, int64_t ss, int64_t n);
  /// dst[to[i]] meets src[from[i]], one after the other.
  void (*at)(
      void* dst,
      const int64_t* to,
      const void* src,
      const int64_t* from,
      int64_t n);
};

}  // namespace mlx::core::cpu

MLX_ISA_KERNEL(
    Combine, find_combine, (mlx::core::Accumulate mode, mlx::core::Dtype dtype))
