// Packed codes of 2 to 8 bits: 32 of them fill a whole number of words.
#pragma once

#include <cstdint>

namespace mlx::core::cuda {

/// Codes [8 * i, 8 * i + 8), the first in the lowest bits. They begin at a byte
/// and lie in one word or two; a second word is read only when they do.
__device__ __forceinline__ uint64_t
load_eight_codes(const uint32_t* words, int64_t i, int bits) {
  int64_t quarters = i * bits;  // bytes before
  const uint32_t* at = words + (quarters >> 2);
  int shift = static_cast<int>(quarters & 3) * 8;
  uint64_t codes = at[0];
  if (shift + 8 * bits > 32) {
    codes |= static_cast<uint64_t>(at[1]) << 32;
  }
  return codes >> shift;
}

/// A code as a float, without the slow conversion: 2^23 + code is exact.
__device__ __forceinline__ float code_value(uint32_t code) {
  return __uint_as_float(code | 0x4b000000u) - 8388608.0f;
}

}  // namespace mlx::core::cuda
