// Vec<bool>: one byte per lane holding 0 or 1, with the arithmetic the library
// gives bool: + is or, - is exclusive or, * is and. Also masks of any lane
// width to and from bool bytes, where the compiler's own conversion goes lane
// by lane (0.8 ns an element instead of 0.1).
#pragma once

#include "backend/cpu/simd/vec.h"

namespace mlx::core::cpu::MLX_ISA {

template <>
struct Vec<bool> {
  static constexpr int size = kVecBytes;
  static constexpr bool real = false;
  using Element = bool;
  using Bytes = Vec<uint8_t>;
  using MaskT = Mask<1>;

  Bytes b;

  Vec() = default;
  MLX_INLINE Vec(Bytes bytes) : b(bytes) {}
  MLX_INLINE Vec(bool x) : b(uint8_t(x)) {}
  /// From a comparison of bytes.
  MLX_INLINE Vec(Mask<1> m) : b(Bytes::RawT(m.v) & Bytes(uint8_t(1)).v) {}

  static MLX_INLINE Vec load(const bool* p) {
    return Bytes::load(reinterpret_cast<const uint8_t*>(p));
  }
  MLX_INLINE void store(bool* p) const {
    b.store(reinterpret_cast<uint8_t*>(p));
  }
  static MLX_INLINE Vec load_partial(const bool* p, size_t n) {
    return Bytes::load_partial(reinterpret_cast<const uint8_t*>(p), n);
  }
  MLX_INLINE void store_partial(bool* p, size_t n) const {
    b.store_partial(reinterpret_cast<uint8_t*>(p), n);
  }

  friend MLX_INLINE Vec operator+(Vec x, Vec y) { return x.b | y.b; }
  friend MLX_INLINE Vec operator-(Vec x, Vec y) { return x.b ^ y.b; }
  friend MLX_INLINE Vec operator*(Vec x, Vec y) { return x.b & y.b; }
  friend MLX_INLINE Vec operator&(Vec x, Vec y) { return x.b & y.b; }
  friend MLX_INLINE Vec operator|(Vec x, Vec y) { return x.b | y.b; }
  friend MLX_INLINE Vec operator^(Vec x, Vec y) { return x.b ^ y.b; }
  friend MLX_INLINE Vec operator~(Vec x) { return x.b ^ Bytes(uint8_t(1)); }

  friend MLX_INLINE MaskT operator==(Vec x, Vec y) { return x.b == y.b; }
  friend MLX_INLINE MaskT operator!=(Vec x, Vec y) { return x.b != y.b; }
  friend MLX_INLINE MaskT operator<(Vec x, Vec y) { return x.b < y.b; }
  friend MLX_INLINE MaskT operator<=(Vec x, Vec y) { return x.b <= y.b; }
  friend MLX_INLINE MaskT operator>(Vec x, Vec y) { return x.b > y.b; }
  friend MLX_INLINE MaskT operator>=(Vec x, Vec y) { return x.b >= y.b; }
};

MLX_INLINE Vec<bool> abs(Vec<bool> x) {
  return x;
}
MLX_INLINE Vec<bool> maximum(Vec<bool> x, Vec<bool> y) {
  return x | y;
}
MLX_INLINE Vec<bool> minimum(Vec<bool> x, Vec<bool> y) {
  return x & y;
}

/// The mask as one byte per lane, 0 or 1.
template <int Bytes>
MLX_INLINE void store_bools(Mask<Bytes> m, void* p) {
  constexpr int kLanes = kVecBytes / Bytes;
  if constexpr (Bytes == 1) {
    auto bytes = m.v & 1;
    __builtin_memcpy(p, &bytes, kLanes);
  } else {
#if MLX_ISA_LEVEL >= 4
    auto v = (__m512i)m.v;
    __m256i bytes;
    if constexpr (Bytes == 2) {
      bytes = _mm256_maskz_set1_epi8(_mm512_movepi16_mask(v), 1);
    } else if constexpr (Bytes == 4) {
      bytes = _mm256_maskz_set1_epi8(_mm512_movepi32_mask(v), 1);
    } else {
      bytes = _mm256_maskz_set1_epi8(_mm512_movepi64_mask(v), 1);
    }
#elif MLX_ISA_LEVEL == 3
    auto v = (__m256i)m.v;
    __m128i bytes;
    if constexpr (Bytes == 2) {
      bytes = _mm_packs_epi16(
          _mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
      bytes = _mm_and_si128(bytes, _mm_set1_epi8(1));
    } else {
      unsigned bits = Bytes == 4 ? _mm256_movemask_ps((__m256)v)
                                 : _mm256_movemask_pd((__m256d)v);
      bytes = _mm_cvtsi64_si128(_pdep_u64(bits, 0x0101010101010101u));
    }
#else
    auto v = (__m128i)m.v;
    __m128i bytes = Bytes == 2 ? v : _mm_packs_epi32(v, v);
    if constexpr (Bytes == 8) {  // each lane twice by now
      bytes = _mm_packs_epi32(bytes, bytes);
    }
    bytes = _mm_packs_epi16(bytes, bytes);
    bytes = _mm_and_si128(bytes, _mm_set1_epi8(1));
#endif
    __builtin_memcpy(p, &bytes, kLanes);
  }
}

/// The mask of lanes whose byte is not 0.
template <int Bytes>
MLX_INLINE Mask<Bytes> load_bools(const void* p) {
  constexpr int kLanes = kVecBytes / Bytes;
  using V = Vec<typename Mask<Bytes>::Lane>;
  if constexpr (Bytes == 1) {
    V v;
    __builtin_memcpy(&v, p, kLanes);
    return v != V(0);
  } else {
#if MLX_ISA_LEVEL >= 4
    __m256i bytes{};
#else
    __m128i bytes{};
#endif
    __builtin_memcpy(&bytes, p, kLanes);
    typename V::RawT wide;
#if MLX_ISA_LEVEL >= 4
    if constexpr (Bytes == 2) {
      wide = typename V::RawT(_mm512_cvtepu8_epi16(bytes));
    } else if constexpr (Bytes == 4) {
      wide =
          typename V::RawT(_mm512_cvtepu8_epi32(_mm256_castsi256_si128(bytes)));
    } else {
      wide =
          typename V::RawT(_mm512_cvtepu8_epi64(_mm256_castsi256_si128(bytes)));
    }
#else
    if constexpr (Bytes == 2) {
      wide = typename V::RawT(MLX_SIMD(cvtepu8_epi16)(bytes));
    } else if constexpr (Bytes == 4) {
      wide = typename V::RawT(MLX_SIMD(cvtepu8_epi32)(bytes));
    } else {
      wide = typename V::RawT(MLX_SIMD(cvtepu8_epi64)(bytes));
    }
#endif
    return V(wide) != V(0);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
