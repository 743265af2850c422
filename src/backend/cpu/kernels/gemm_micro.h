// The micro kernel: one tile of sums in registers, one step of depth per turn.
// Tiles are as tall as the register file allows with two vectors of columns:
// v2 4 x 8, v3 6 x 16, v4 14 x 32 for float, half as many columns for double.
#pragma once

#include "backend/cpu/simd/vec.h"

namespace mlx::core::cpu::MLX_ISA {

inline constexpr int kTileRows =
    MLX_ISA_LEVEL >= 4 ? 14 : (MLX_ISA_LEVEL == 3 ? 6 : 4);
template <typename T>
inline constexpr int kTileCols = 2 * Vec<T>::size;

/// Strides of the operands in elements. Packed panels have constants here,
/// which the compiler folds into the addresses.
struct MicroStrides {
  int64_t a_row;
  int64_t a_depth;
  int64_t b_depth;
};

/// sums[0:Rows, 0:cols] (+)= a * b.
template <typename T, int Rows>
MLX_INLINE void micro_tile(
    const T* a,
    const T* b,
    MicroStrides strides,
    int64_t depth,
    T* sums,
    int64_t sums_stride,
    bool add) {
  using V = Vec<T>;
  V tile[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    tile[i][0] = V(T(0));
    tile[i][1] = V(T(0));
    __builtin_prefetch(sums + i * sums_stride);
  }
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    V b0 = V::load(b + k * strides.b_depth);
    V b1 = V::load(b + k * strides.b_depth + V::size);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      V x(a[i * strides.a_row + k * strides.a_depth]);
      tile[i][0] = fma(x, b0, tile[i][0]);
      tile[i][1] = fma(x, b1, tile[i][1]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    T* row = sums + i * sums_stride;
    if (add) {
      tile[i][0] += V::load(row);
      tile[i][1] += V::load(row + V::size);
    }
    tile[i][0].store(row);
    tile[i][1].store(row + V::size);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
