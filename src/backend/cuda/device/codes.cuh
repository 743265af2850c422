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

/// A code, which begins at bit At of a word, plus 2^Bits: exact, and hardly
/// longer than the code, which thus need not be brought to zero.
template <int Bits, int At>
__device__ __forceinline__ float offset_code(uint32_t codes) {
  constexpr int kUp = 23 - Bits - At;
  constexpr uint32_t kMask = ((1u << Bits) - 1) << (23 - Bits);
  constexpr uint32_t kOffset = (127u + Bits) << 23;
  uint32_t moved = kUp >= 0 ? codes << (kUp & 31) : codes >> (-kUp & 31);
  return __uint_as_float((moved & kMask) | kOffset);
}

/// What pairs of codes are offset by, so that they need not be brought to zero:
/// codes of Bits set into the mantissa of 2^Bits are exact and hardly longer
/// than they are. bfloat16 has no room for that at 8 bits.
template <typename T, int Bits>
inline constexpr float pair_offset_v = Bits == 8 && std::is_same_v<T, bhalf>
                                           ? 0.0f
                                           : float(1 << Bits);

/// Two codes, which begin at bit At of the low and the high half of a word,
/// each plus the offset.
template <typename T, int Bits, int At>
__device__ __forceinline__ uint32_t code_pair(uint32_t codes) {
  constexpr bool kHalf = std::is_same_v<T, half>;
  constexpr int kMantissa = kHalf ? 10 : 7;
  constexpr int kUp = kMantissa - Bits - At;
  constexpr uint32_t kMask = ((1u << Bits) - 1) << (kMantissa - Bits);
  constexpr uint32_t kOffset = ((kHalf ? 15u : 127u) + Bits) << kMantissa;
  uint32_t moved = kUp >= 0 ? codes << (kUp & 31) : codes >> (-kUp & 31);
  uint32_t pair;
  // (moved & mask) | offset
  asm("lop3.b32 %0, %1, %2, %3, 0xea;"
      : "=r"(pair)
      : "r"(moved), "n"(kMask << 16 | kMask), "n"(kOffset << 16 | kOffset));
  return pair;
}

/// Four codes of 8 bits as bfloat16, (0, 2) and (1, 3): up to 255 a float is
/// one followed by zeros.
__device__ __forceinline__ void unpack_bytes(
    uint32_t word, uint32_t& even, uint32_t& odd) {
  uint32_t values[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t set = __byte_perm(word, 0x4b000000u, 0x7440 + i);
    values[i] = __float_as_uint(__uint_as_float(set) - 8388608.0f);
  }
  even = __byte_perm(values[0], values[2], 0x7632);
  odd = __byte_perm(values[1], values[3], 0x7632);
}

/// Eight codes as four pairs, plus the offset: (0, 4), (1, 5), (2, 6), (3, 7),
/// or at 8 bits (0, 2), (1, 3), (4, 6), (5, 7).
template <typename T, int Bits>
__device__ __forceinline__ void unpack_pairs(
    uint32_t low, uint32_t high, uint32_t (&pairs)[4]) {
  if constexpr (Bits == 4) {
    pairs[0] = code_pair<T, 4, 0>(low);
    pairs[1] = code_pair<T, 4, 4>(low);
    pairs[2] = code_pair<T, 4, 8>(low);
    pairs[3] = code_pair<T, 4, 12>(low);
  } else if constexpr (Bits == 8 && std::is_same_v<T, half>) {
    pairs[0] = code_pair<T, 8, 0>(low);
    pairs[1] = code_pair<T, 8, 8>(low);
    pairs[2] = code_pair<T, 8, 0>(high);
    pairs[3] = code_pair<T, 8, 8>(high);
  } else if constexpr (Bits == 8) {
    unpack_bytes(low, pairs[0], pairs[1]);
    unpack_bytes(high, pairs[2], pairs[3]);
  } else {
    uint64_t codes = static_cast<uint64_t>(high) << 32 | low;
    constexpr uint32_t kMask = (1u << Bits) - 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      auto first = static_cast<uint32_t>(codes >> (Bits * i)) & kMask;
      auto second = static_cast<uint32_t>(codes >> (Bits * (i + 4)));
      pairs[i] = code_pair<T, Bits, 0>(first | second << 16);
    }
  }
}

/// Eight numbers of a half type in the order of unpack_pairs.
template <int Bits>
__device__ __forceinline__ void order_pairs(uint4 x, uint32_t (&pairs)[4]) {
  if constexpr (Bits == 8) {
    pairs[0] = __byte_perm(x.x, x.y, 0x5410);
    pairs[1] = __byte_perm(x.x, x.y, 0x7632);
    pairs[2] = __byte_perm(x.z, x.w, 0x5410);
    pairs[3] = __byte_perm(x.z, x.w, 0x7632);
  } else {
    pairs[0] = __byte_perm(x.x, x.z, 0x5410);
    pairs[1] = __byte_perm(x.x, x.z, 0x7632);
    pairs[2] = __byte_perm(x.y, x.w, 0x5410);
    pairs[3] = __byte_perm(x.y, x.w, 0x7632);
  }
}

}  // namespace mlx::core::cuda
