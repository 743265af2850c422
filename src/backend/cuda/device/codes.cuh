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

/// Two codes, set into the low and the high half, as numbers of a half type:
/// 1024 + code is exact in float16, 128 + code in bfloat16 up to 7 bits.
template <typename T>
__device__ __forceinline__ uint32_t code_pair(uint32_t codes) {
  if constexpr (std::is_same_v<T, half>) {
    constexpr uint32_t kMagic = 0x64006400u;
    uint32_t sum = codes | kMagic;
    __half2 value = __hsub2(
        reinterpret_cast<const __half2&>(sum),
        reinterpret_cast<const __half2&>(kMagic));
    return reinterpret_cast<const uint32_t&>(value);
  } else {
    constexpr uint32_t kMagic = 0x43004300u;
    uint32_t sum = codes | kMagic;
    __nv_bfloat162 value = __hsub2(
        reinterpret_cast<const __nv_bfloat162&>(sum),
        reinterpret_cast<const __nv_bfloat162&>(kMagic));
    return reinterpret_cast<const uint32_t&>(value);
  }
}

/// Eight codes as four pairs of numbers: (0, 4), (1, 5), (2, 6), (3, 7).
template <typename T, int Bits>
__device__ __forceinline__ void unpack_pairs(
    uint32_t low, uint32_t high, uint32_t (&pairs)[4]) {
  if constexpr (Bits == 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[i] = code_pair<T>((low >> (4 * i)) & 0x000f000fu);
    }
  } else if constexpr (Bits == 8 && std::is_same_v<T, half>) {
    uint32_t front = __byte_perm(low, high, 0x5140);  // 0, 4, 1, 5
    uint32_t back = __byte_perm(low, high, 0x7362);   // 2, 6, 3, 7
    pairs[0] = code_pair<T>(__byte_perm(front, 0, 0x4140));
    pairs[1] = code_pair<T>(__byte_perm(front, 0, 0x4342));
    pairs[2] = code_pair<T>(__byte_perm(back, 0, 0x4140));
    pairs[3] = code_pair<T>(__byte_perm(back, 0, 0x4342));
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
      auto second = static_cast<uint32_t>(codes >> (Bits * (i + 4))) & kMask;
      pairs[i] = code_pair<T>(first | second << 16);
    }
  }
}

}  // namespace mlx::core::cuda
