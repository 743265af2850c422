// Between element types: load_as<U>/store_as convert on the way from and to
// memory (float16 and bfloat16 included), convert<U> changes lanes of equal
// width, widen/narrow go between float and double. Also horizontal reductions.
#pragma once

#include "backend/cpu/simd/vec.h"
#include "mlx/types/half_types.h"

namespace mlx::core::cpu::MLX_ISA {

/// Lanes of equal width; floats truncate toward zero, out of range undefined.
template <typename U, typename T>
MLX_INLINE Vec<U> convert(Vec<T> x) {
  static_assert(sizeof(U) == sizeof(T));
  return __builtin_convertvector(x.v, typename Vec<U>::RawT);
}

/// Integer nearest to x (half to even) for |x| < 2^31.
MLX_INLINE Vec<int32_t> round_to_int(Vec<float> x) {
  return Vec<int32_t>::RawT(MLX_SIMD(cvtps_epi32)(x.v));
}

namespace detail {

template <typename V>
struct Halves {
  V low, high;
};
using FloatHalf = Raw<float, kVecBytes / 2>;

}  // namespace detail

/// The lower and upper half of the lanes as doubles.
MLX_INLINE Vec<double> widen_low(Vec<float> x) {
  auto h = __builtin_bit_cast(detail::Halves<detail::FloatHalf>, x.v);
  return __builtin_convertvector(h.low, Vec<double>::RawT);
}
MLX_INLINE Vec<double> widen_high(Vec<float> x) {
  auto h = __builtin_bit_cast(detail::Halves<detail::FloatHalf>, x.v);
  return __builtin_convertvector(h.high, Vec<double>::RawT);
}
MLX_INLINE Vec<float> narrow(Vec<double> low, Vec<double> high) {
  detail::Halves<detail::FloatHalf> h{
      __builtin_convertvector(low.v, detail::FloatHalf),
      __builtin_convertvector(high.v, detail::FloatHalf)};
  return __builtin_bit_cast(Vec<float>::RawT, h);
}

// 16-bit floats. `Half` holds as many 16-bit lanes as Vec<float> has lanes; at
// v2 these are 8 bytes in the low half of a register.
using Half = Raw<uint16_t, kVecBytes / 2>;

namespace detail {

// The compiler's own conversions split and join registers more than needed.
MLX_INLINE Vec<uint32_t> widen_half(Half bits) {
#if MLX_ISA_LEVEL >= 4
  return Vec<uint32_t>::RawT(_mm512_cvtepu16_epi32((__m256i)bits));
#elif MLX_ISA_LEVEL == 3
  return Vec<uint32_t>::RawT(_mm256_cvtepu16_epi32((__m128i)bits));
#else
  return Vec<uint32_t>::RawT(
      _mm_cvtepu16_epi32(_mm_cvtsi64_si128((int64_t)bits)));
#endif
}
/// For lanes below 2^16.
MLX_INLINE Half narrow_half(Vec<uint32_t> x) {
#if MLX_ISA_LEVEL >= 4
  return Half(_mm512_cvtepi32_epi16((__m512i)x.v));
#elif MLX_ISA_LEVEL == 3
  auto v = (__m256i)x.v;
  return Half(_mm_packus_epi32(
      _mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
#else
  auto v = (__m128i)x.v;
  return Half(_mm_cvtsi128_si64(_mm_packus_epi32(v, v)));
#endif
}

}  // namespace detail

MLX_INLINE Vec<float> from_bfloat16(Half bits) {
  return bitcast<float>(detail::widen_half(bits) << 16);
}
/// Round to nearest even; NaN stays NaN (its lowest fraction bits may go).
MLX_INLINE Half to_bfloat16(Vec<float> x) {
  using U = Vec<uint32_t>;
  U bits = bitcast<uint32_t>(x);
  U rounded = bits + ((bits >> 16) & U(1u)) + U(0x7fffu);
  U result = select(x != x, bits | U(0x400000u), rounded);
  return detail::narrow_half(result >> 16);
}

#if MLX_ISA_LEVEL >= 4
MLX_INLINE Vec<float> from_float16(Half bits) {
  return _mm512_cvtph_ps((__m256i)bits);
}
MLX_INLINE Half to_float16(Vec<float> x) {
  return Half(_mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}
#elif MLX_ISA_LEVEL == 3
MLX_INLINE Vec<float> from_float16(Half bits) {
  return _mm256_cvtph_ps((__m128i)bits);
}
MLX_INLINE Half to_float16(Vec<float> x) {
  return Half(_mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}
#else
// Multiplying by 2^112 moves the exponent bias from 15 to 127 and normalises
// subnormals on the way; infinity and NaN get their exponent put in.
MLX_INLINE Vec<float> from_float16(Half bits) {
  Vec<uint32_t> w = detail::widen_half(bits);
  Vec<uint32_t> magnitude = (w & Vec<uint32_t>(0x7fffu)) << 13;
  Vec<uint32_t> sign = (w & Vec<uint32_t>(0x8000u)) << 16;
  Vec<uint32_t> scaled =
      bitcast<uint32_t>(bitcast<float>(magnitude) * Vec<float>(0x1p112f));
  auto special = magnitude >= Vec<uint32_t>(0x7c00u << 13);
  return bitcast<float>(
      select(special, magnitude | Vec<uint32_t>(0x7f800000u), scaled) | sign);
}
// Normal results round by integer carry. Subnormal ones let the float adder
// round: adding 0.5 puts the unit of 2^-24 into the last place.
MLX_INLINE Half to_float16(Vec<float> x) {
  using U = Vec<uint32_t>;
  U bits = bitcast<uint32_t>(x);
  U magnitude = bits & U(0x7fffffffu);
  U sign = (bits >> 16) & U(0x8000u);
  U normal =
      (magnitude + U(0xfffu) + ((magnitude >> 13) & U(1u)) - U(0x38000000u)) >>
      13;
  U tiny = bitcast<uint32_t>(bitcast<float>(magnitude) + Vec<float>(0.5f)) -
           U(0x3f000000u);
  U result = select(magnitude < U(0x38800000u), tiny, normal);
  result = select(magnitude >= U(0x477ff000u), U(0x7c00u), result);
  U nan = U(0x7e00u) | ((magnitude >> 13) & U(0x1ffu));
  result = select(magnitude > U(0x7f800000u), nan, result) | sign;
  return detail::narrow_half(result);
}
#endif

/// `Vec<U>::size` elements of T from memory, converted. float16 and bfloat16
/// come as float.
template <typename U, typename T>
MLX_INLINE Vec<U> load_as(const T* p) {
  if constexpr (
      sizeof(T) == sizeof(U) && T(0.5f) == U(0.5f) && T(-1) == U(-1)) {
    return Vec<U>::load(reinterpret_cast<const U*>(p));
  } else {
    Raw<T, Vec<U>::size * sizeof(T)> raw;
    __builtin_memcpy(&raw, p, sizeof(raw));
    return __builtin_convertvector(raw, typename Vec<U>::RawT);
  }
}
template <typename U>
MLX_INLINE Vec<U> load_as(const float16_t* p) {
  Half raw;
  __builtin_memcpy(&raw, p, sizeof(raw));
  return from_float16(raw);
}
template <typename U>
MLX_INLINE Vec<U> load_as(const bfloat16_t* p) {
  Half raw;
  __builtin_memcpy(&raw, p, sizeof(raw));
  return from_bfloat16(raw);
}

template <typename U, typename T>
MLX_INLINE void store_as(Vec<U> x, T* p) {
  auto raw = __builtin_convertvector(x.v, Raw<T, Vec<U>::size * sizeof(T)>);
  __builtin_memcpy(p, &raw, sizeof(raw));
}
MLX_INLINE void store_as(Vec<float> x, float16_t* p) {
  Half raw = to_float16(x);
  __builtin_memcpy(p, &raw, sizeof(raw));
}
MLX_INLINE void store_as(Vec<float> x, bfloat16_t* p) {
  Half raw = to_bfloat16(x);
  __builtin_memcpy(p, &raw, sizeof(raw));
}

/// Tails: the first n lanes (n <= size), the others zero. No byte outside is
/// touched.
template <typename U, typename T>
MLX_INLINE Vec<U> load_partial_as(const T* p, size_t n) {
  T buffer[Vec<U>::size];
  __builtin_memset(&buffer, 0, sizeof(buffer));
  __builtin_memcpy(&buffer, p, n * sizeof(T));
  return load_as<U>(buffer);
}
template <typename U, typename T>
MLX_INLINE void store_partial_as(Vec<U> x, T* p, size_t n) {
  T buffer[Vec<U>::size];
  store_as(x, buffer);
  __builtin_memcpy(p, &buffer, n * sizeof(T));
}

namespace detail {

template <typename T, int Bytes, typename Op>
MLX_INLINE T fold(Raw<T, Bytes> v, Op op) {
  if constexpr (Bytes > 16) {
    auto h = __builtin_bit_cast(Halves<Raw<T, Bytes / 2>>, v);
    return fold<T, Bytes / 2>(op(h.low, h.high), op);
  } else {
    T lanes[16 / sizeof(T)];
    __builtin_memcpy(lanes, &v, 16);
    for (int n = 8 / sizeof(T); n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) {
        lanes[i] = op(lanes[i], lanes[i + n]);
      }
    }
    return lanes[0];
  }
}

}  // namespace detail

/// Horizontal reductions, always folding the upper half onto the lower.
template <typename T>
MLX_INLINE T sum(Vec<T> x) {
  using Wrap = typename detail::WrapOf<T, Vec<T>::real>::type;
  return T(detail::fold<Wrap, kVecBytes>(
      typename Vec<T>::Wrap(x.v),
      [](auto a, auto b) { return decltype(a)(a + b); }));
}
/// NaN when a lane is NaN.
template <typename T>
MLX_INLINE T max(Vec<T> x) {
  T m = detail::fold<T, kVecBytes>(
      x.v, [](auto a, auto b) { return a > b ? a : b; });
  if constexpr (Vec<T>::real) {
    return any(x != x) ? T(__builtin_nan("")) : m;
  }
  return m;
}
template <typename T>
MLX_INLINE T min(Vec<T> x) {
  T m = detail::fold<T, kVecBytes>(
      x.v, [](auto a, auto b) { return a < b ? a : b; });
  if constexpr (Vec<T>::real) {
    return any(x != x) ? T(__builtin_nan("")) : m;
  }
  return m;
}

}  // namespace mlx::core::cpu::MLX_ISA
