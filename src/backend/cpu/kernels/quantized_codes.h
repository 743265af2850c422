// How packed codes become numbers. A tile is 8 lanes of one 32-bit word, each
// with the same number of whole codes:
//
//   bits          2    3    4    5    6    8
//   bytes a lane  4    3    4   2.5   3    4      (5 bits: two lanes share the
//   codes a lane 16    8    8    4    4    4       middle byte of five)
//
// A code is masked where it stands and converted, which gives code * 2^shift
// in two instructions for 8 codes; whoever uses the number multiplies the other
// factor by 2^-shift, exactly. The top code of a full word is shifted down
// instead, as it would look negative.
#pragma once

#include "backend/cpu/simd/vec_convert.h"
#include "mlx/dtype.h"

namespace mlx::core::cpu::MLX_ISA {

// 8 lanes at every level: v2 works in halves.
using Float8 = Raw<float, 32>;
using Word8 = Raw<uint32_t, 32>;

template <int Bits>
struct Codes {
  static constexpr int per_lane = Bits == 5 || Bits == 6 ? 4
                                  : Bits == 3            ? 8
                                                         : 32 / Bits;
  static constexpr int count = 8 * per_lane;
  static constexpr int bytes = count * Bits / 8;
  static constexpr uint32_t mask = (1u << Bits) - 1;
  static constexpr bool tops_word(int j) {
    return 32 % Bits == 0 && j == per_lane - 1;
  }
  /// Where code j of a lane begins.
  static constexpr int position(int lane, int j) {
    return Bits * j + (Bits == 5 && lane % 2 == 1 ? 4 : 0);
  }
  /// 2^-shift of the number that value() gives.
  static constexpr float unscale(int lane, int j) {
    return tops_word(j) ? 1.0f : 1.0f / float(1u << position(lane, j));
  }
};

#if MLX_ISA_LEVEL >= 2
/// Spreads 16 loaded bytes over four lanes, `unit` bytes for each, from byte
/// `start` on. 5 bits: lanes take three bytes in steps of 2 and 3.
template <int Bits>
MLX_INLINE __m128i spread_bytes(__m128i raw, int start) {
  alignas(16) uint8_t order[16];
  for (int lane = 0; lane < 4; ++lane) {
    int first = Bits == 5 ? lane / 2 * 5 + lane % 2 * 2 : lane * 3;
    for (int byte = 0; byte < 4; ++byte) {
      order[lane * 4 + byte] =
          byte < 3 ? uint8_t(start + first + byte) : uint8_t(0x80);
    }
  }
  __m128i mask;
  __builtin_memcpy(&mask, order, 16);
  return _mm_shuffle_epi8(raw, mask);
}
#endif

/// One tile of codes. Reads Codes<Bits>::bytes bytes, not one more.
template <int Bits>
MLX_INLINE void load_tile(const uint8_t* p, Word8& lanes) {
  if constexpr (32 % Bits == 0) {
    __builtin_memcpy(&lanes, p, 32);
  } else {
    constexpr int kBytes = Codes<Bits>::bytes;
    __m128i low, high;
    __builtin_memcpy(&low, p, 16);
    __builtin_memcpy(&high, p + kBytes - 16, 16);
    low = spread_bytes<Bits>(low, 0);
    high = spread_bytes<Bits>(high, 16 - kBytes / 2);
#if MLX_ISA_LEVEL >= 3
    // Through memory the two halves would not be forwarded to one load.
    lanes =
        Word8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
#else
    __builtin_memcpy(&lanes, &low, 16);
    __builtin_memcpy(reinterpret_cast<char*>(&lanes) + 16, &high, 16);
#endif
  }
}

/// The same for a tile that ends early: `bytes` bytes, then zeros.
template <int Bits>
MLX_INLINE void load_tile_part(const uint8_t* p, int bytes, Word8& lanes) {
  alignas(32) uint8_t padded[32] = {};
  __builtin_memcpy(padded, p, size_t(bytes));
  load_tile<Bits>(padded, lanes);
}

MLX_INLINE void to_float(const Word8& words, Float8& value) {
  using Int8 = Raw<int32_t, 32>;
  value = __builtin_convertvector(Int8(words), Float8);
}

/// Code j of every lane, times 2^shift.
template <int Bits>
MLX_INLINE void tile_values(const Word8& lanes, int j, Float8& value) {
  using C = Codes<Bits>;
  if (C::tops_word(j)) {
    to_float(lanes >> (32 - Bits), value);
    return;
  }
  uint32_t even = C::mask << C::position(0, j);
  uint32_t odd = C::mask << C::position(1, j);
  to_float(lanes & Word8{even, odd, even, odd, even, odd, even, odd}, value);
}

/// Code j of one lane of 8 tiles; lane i of `words` comes from tile i.
template <int Bits>
MLX_INLINE void lane_values(
    const Word8& words, int lane, int j, Float8& value) {
  using C = Codes<Bits>;
  if (C::tops_word(j)) {
    to_float(words >> (32 - Bits), value);
    return;
  }
  to_float(words & (C::mask << C::position(lane, j)), value);
}

/// A scale or bias for each lane of a tile that covers `Groups` groups.
template <int Groups>
MLX_INLINE void spread_groups(const float* p, Float8& value) {
  if constexpr (Groups == 1) {
    value = p[0] - Float8{};  // p[0] + 0 would lose the sign of -0
  } else if constexpr (Groups == 2) {
#if MLX_ISA_LEVEL >= 3
    // Two loads and a blend, where the braces below give seven shuffles.
    value = Float8(_mm256_blend_ps(
        _mm256_broadcast_ss(p), _mm256_broadcast_ss(p + 1), 0xf0));
#else
    value = Float8{p[0], p[0], p[0], p[0], p[1], p[1], p[1], p[1]};
#endif
  } else {
    static_assert(Groups == 4);
#if MLX_ISA_LEVEL >= 3
    __m256 four = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(p));
    value = Float8(
        _mm256_permutevar_ps(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)));
#else
    value = Float8{p[0], p[0], p[1], p[1], p[2], p[2], p[3], p[3]};
#endif
  }
}

/// Groups that a tile covers, when more than one.
template <int Bits>
constexpr int tile_groups(int group_size) {
  return Codes<Bits>::count > group_size ? Codes<Bits>::count / group_size : 1;
}

/// Calls f.operator()<Bits>() for the width at hand.
template <typename F>
MLX_INLINE void with_bits(int bits, F&& f) {
  switch (bits) {
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    case 6:
      return f.template operator()<6>();
    default:
      return f.template operator()<8>();
  }
}

/// Calls f.operator()<Groups>() with the groups that a tile covers.
template <int Bits, typename F>
MLX_INLINE void with_groups(int group_size, F&& f) {
  int groups = tile_groups<Bits>(group_size);
  if constexpr (Codes<Bits>::count >= 128) {
    if (groups == 4) {
      return f.template operator()<4>();
    }
  }
  if constexpr (Codes<Bits>::count >= 64) {
    if (groups == 2) {
      return f.template operator()<2>();
    }
  }
  return f.template operator()<1>();
}

MLX_INLINE float as_float(const float* p) {
  return *p;
}
MLX_INLINE float as_float(const float16_t* p) {
  Half half = {};
  __builtin_memcpy(&half, p, sizeof(*p));
  return from_float16(half)[0];
}
MLX_INLINE float as_float(const bfloat16_t* p) {
  Half half = {};
  __builtin_memcpy(&half, p, sizeof(*p));
  return from_bfloat16(half)[0];
}

/// count numbers as floats, then zeros up to `padded`. Zeros first, in whole
/// vectors from the end, and a last vector that overlaps the one before: rows
/// of groups are short, a tail done one by one would cost more than the rest.
template <typename S>
MLX_INLINE void copy_as_float(
    const S* from, int64_t count, int64_t padded, float* to) {
  constexpr int64_t n = Vec<float>::size;
  int64_t end = padded;
  for (; end > count && end >= n; end -= n) {
    Vec<float>(0.0f).store(to + end - n);
  }
  for (; end > count; --end) {
    to[end - 1] = 0;
  }
  int64_t i = 0;
  for (; i + n <= count; i += n) {
    load_as<float>(from + i).store(to + i);
  }
  if (i < count && count >= n) {
    load_as<float>(from + count - n).store(to + count - n);
  } else {
    for (; i < count; ++i) {
      to[i] = as_float(from + i);
    }
  }
}

/// count scales or biases from `offset` on, and zeros up to `padded`.
static void load_floats(
    const void* base,
    Dtype type,
    int64_t offset,
    int64_t count,
    int64_t padded,
    float* to) {
  if (type == Dtype::Val::float16) {
    copy_as_float(
        static_cast<const float16_t*>(base) + offset, count, padded, to);
  } else if (type == Dtype::Val::bfloat16) {
    copy_as_float(
        static_cast<const bfloat16_t*>(base) + offset, count, padded, to);
  } else {
    copy_as_float(static_cast<const float*>(base) + offset, count, padded, to);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
