// Packed codes of 2 to 8 bits: 32 of them fill a whole number of words. Codes
// become numbers by being set into the mantissa of a large one, which is then
// taken away: conversions of integers are slow.
#pragma once

#include <cstdint>

#include "backend/cuda/device/types.cuh"

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

/// A code as a float: 2^23 + code is exact.
__device__ __forceinline__ float code_value(uint32_t code) {
  return __uint_as_float(code | 0x4b000000u) - 8388608.0f;
}

/// What pairs of codes are offset by, so that they need not be brought to zero:
/// codes set into the mantissa of 1024 in float16, 128 in bfloat16, exactly.
template <typename T, int Bits>
inline constexpr float pair_offset_v = std::is_same_v<T, half>
                                           ? 1024.0f
                                           : (Bits == 8 ? 0.0f : 128.0f);

/// Two codes from the low and the high half of a word, each plus the offset.
template <typename T, uint32_t mask>
__device__ __forceinline__ uint32_t code_pair(uint32_t codes) {
  constexpr uint32_t kOffset =
      std::is_same_v<T, half> ? 0x64006400u : 0x43004300u;
  uint32_t pair;
  // (codes & mask) | offset
  asm("lop3.b32 %0, %1, %2, %3, 0xea;"
      : "=r"(pair)
      : "r"(codes), "n"(mask), "n"(kOffset));
  return pair;
}

/// Eight codes as four pairs, plus the offset: (0, 4), (1, 5), (2, 6), (3, 7).
template <typename T, int Bits>
__device__ __forceinline__ void unpack_pairs(
    uint32_t low, uint32_t high, uint32_t (&pairs)[4]) {
  if constexpr (Bits == 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[i] = code_pair<T, 0x000f000fu>(low >> (4 * i));
    }
  } else if constexpr (Bits == 8 && std::is_same_v<T, half>) {
    constexpr uint32_t kOffset = 0x64646464u;
    uint32_t front = __byte_perm(low, high, 0x5140);  // 0, 4, 1, 5
    uint32_t back = __byte_perm(low, high, 0x7362);   // 2, 6, 3, 7
    pairs[0] = __byte_perm(front, kOffset, 0x4140);
    pairs[1] = __byte_perm(front, kOffset, 0x4342);
    pairs[2] = __byte_perm(back, kOffset, 0x4140);
    pairs[3] = __byte_perm(back, kOffset, 0x4342);
  } else if constexpr (Bits == 8) {
    // Up to 255 a float is a bfloat16 followed by zeros.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float first = code_value(__byte_perm(low, 0, 0x4440 + i));
      float second = code_value(__byte_perm(high, 0, 0x4440 + i));
      pairs[i] =
          __byte_perm(__float_as_uint(first), __float_as_uint(second), 0x7632);
    }
  } else {
    constexpr uint32_t kMask = (1u << Bits) - 1;
    uint64_t codes = static_cast<uint64_t>(high) << 32 | low;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      auto first = static_cast<uint32_t>(codes >> (Bits * i)) & kMask;
      auto second = static_cast<uint32_t>(codes >> (Bits * (i + 4)));
      pairs[i] = code_pair<T, kMask << 16 | kMask>(first | second << 16);
    }
  }
}

}  // namespace mlx::core::cuda
