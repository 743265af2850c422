// The tensor cores' product of 16x16 and 16x8 matrices of a half type, added to
// float32. Lane l holds of a: rows l/4 and l/4 + 8, two neighbouring columns
// 2(l%4) of each half; of b: the same two rows of each half in column l/4; of
// the sums: rows l/4 and l/4 + 8, columns 2(l%4) and the next.
#pragma once

#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

/// sums += a * b. a: row l/4 first half, row l/4 + 8 first half, then the
/// second halves; every register is two numbers.
template <typename T>
__device__ __forceinline__ void multiply_tiles(
    float (&sums)[4],
    uint32_t a0,
    uint32_t a1,
    uint32_t a2,
    uint32_t a3,
    uint32_t b0,
    uint32_t b1) {
  if constexpr (std::is_same_v<T, half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
}

}  // namespace mlx::core::cuda
