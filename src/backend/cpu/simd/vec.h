// Vec<T>: one register of T at the level this file is compiled for (16 bytes
// at v2, 32 at v3, 64 at v4), over GCC vector extensions. Everything lives in
// the level's own namespace and is always inlined, so that no AVX-512 copy of
// a function can be linked into the code of a lower level. Integers wrap.
// Conversions, 16-bit floats and horizontal reductions: vec_convert.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#ifndef MLX_ISA_LEVEL
#error "compile with -DMLX_ISA=v2|v3|v4 -DMLX_ISA_LEVEL=2|3|4"
#endif

#define MLX_INLINE inline __attribute__((always_inline))

namespace mlx::core::cpu::MLX_ISA {

inline constexpr int kVecBytes = 16 << (MLX_ISA_LEVEL - 2);
/// Without it, fma() rounds twice and error-free products need splitting.
inline constexpr bool kHasFma = MLX_ISA_LEVEL >= 3;

namespace detail {

template <typename T, int Bytes>
struct RawOf {
  typedef T type __attribute__((vector_size(Bytes)));
};

template <int Bytes>
struct IntOf;
template <>
struct IntOf<1> {
  using type = int8_t;
  using unsigned_type = uint8_t;
};
template <>
struct IntOf<2> {
  using type = int16_t;
  using unsigned_type = uint16_t;
};
template <>
struct IntOf<4> {
  using type = int32_t;
  using unsigned_type = uint32_t;
};
template <>
struct IntOf<8> {
  using type = int64_t;
  using unsigned_type = uint64_t;
};

template <typename T>
inline constexpr bool is_real = false;
template <>
inline constexpr bool is_real<float> = true;
template <>
inline constexpr bool is_real<double> = true;

/// The type whose arithmetic wraps: unsigned for integers, T for floats.
template <typename T, bool Real>
struct WrapOf {
  using type = typename IntOf<sizeof(T)>::unsigned_type;
};
template <typename T>
struct WrapOf<T, true> {
  using type = T;
};

}  // namespace detail

template <typename T, int Bytes>
using Raw = typename detail::RawOf<T, Bytes>::type;
/// The signed and unsigned integer as wide as T.
template <typename T>
using IntFor = typename detail::IntOf<sizeof(T)>::type;
template <typename T>
using UIntFor = typename detail::IntOf<sizeof(T)>::unsigned_type;

/// The outcome of a comparison: all bits set or none in each lane of `Bytes`.
template <int Bytes>
struct Mask {
  using Lane = typename detail::IntOf<Bytes>::type;
  Raw<Lane, kVecBytes> v;

  friend MLX_INLINE Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
  friend MLX_INLINE Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
  friend MLX_INLINE Mask operator^(Mask a, Mask b) { return {a.v ^ b.v}; }
  friend MLX_INLINE Mask operator!(Mask a) { return {~a.v}; }
  friend MLX_INLINE Mask operator~(Mask a) { return {~a.v}; }
};

template <typename T>
struct Vec {
  static constexpr int size = kVecBytes / sizeof(T);
  static constexpr bool real = detail::is_real<T>;
  using Element = T;
  using RawT = Raw<T, kVecBytes>;
  using MaskT = Mask<sizeof(T)>;
  using Wrap = Raw<typename detail::WrapOf<T, real>::type, kVecBytes>;
  using Bits = Raw<UIntFor<T>, kVecBytes>;

  RawT v;

  Vec() = default;
  MLX_INLINE Vec(RawT raw) : v(raw) {}
  /// Every lane holds x.
  MLX_INLINE Vec(T x) : v(RawT{} + x) {
    if constexpr (real) {
      v = x - RawT{};  // x + 0 would lose the sign of -0
    }
  }

  static MLX_INLINE Vec load(const T* p) {
    Vec r;
    __builtin_memcpy(&r.v, p, sizeof(r.v));
    return r;
  }
  MLX_INLINE void store(T* p) const { __builtin_memcpy(p, &v, sizeof(v)); }
  /// The first n lanes (n < size) from memory, the others zero. Touches no
  /// byte past p + n.
  static MLX_INLINE Vec load_partial(const T* p, size_t n);
  MLX_INLINE void store_partial(T* p, size_t n) const;

  MLX_INLINE T operator[](int lane) const { return v[lane]; }

  friend MLX_INLINE Vec operator+(Vec a, Vec b) {
    return RawT(Wrap(a.v) + Wrap(b.v));
  }
  friend MLX_INLINE Vec operator-(Vec a, Vec b) {
    return RawT(Wrap(a.v) - Wrap(b.v));
  }
  friend MLX_INLINE Vec operator*(Vec a, Vec b) {
    return RawT(Wrap(a.v) * Wrap(b.v));
  }
  friend MLX_INLINE Vec operator/(Vec a, Vec b) { return a.v / b.v; }
  friend MLX_INLINE Vec operator-(Vec a) { return RawT(-Wrap(a.v)); }
  friend MLX_INLINE Vec operator&(Vec a, Vec b) {
    return RawT(Bits(a.v) & Bits(b.v));
  }
  friend MLX_INLINE Vec operator|(Vec a, Vec b) {
    return RawT(Bits(a.v) | Bits(b.v));
  }
  friend MLX_INLINE Vec operator^(Vec a, Vec b) {
    return RawT(Bits(a.v) ^ Bits(b.v));
  }
  friend MLX_INLINE Vec operator~(Vec a) { return RawT(~Bits(a.v)); }
  /// Shift counts must be below the width in bits. >> keeps the sign of
  /// signed T.
  friend MLX_INLINE Vec operator<<(Vec a, int n) {
    return RawT(Bits(a.v) << n);
  }
  friend MLX_INLINE Vec operator>>(Vec a, int n) { return a.v >> n; }
  friend MLX_INLINE Vec operator<<(Vec a, Vec n) {
    return RawT(Bits(a.v) << Bits(n.v));
  }
  friend MLX_INLINE Vec operator>>(Vec a, Vec n) { return a.v >> n.v; }

  friend MLX_INLINE MaskT operator==(Vec a, Vec b) { return {a.v == b.v}; }
  friend MLX_INLINE MaskT operator!=(Vec a, Vec b) { return {a.v != b.v}; }
  friend MLX_INLINE MaskT operator<(Vec a, Vec b) { return {a.v < b.v}; }
  friend MLX_INLINE MaskT operator<=(Vec a, Vec b) { return {a.v <= b.v}; }
  friend MLX_INLINE MaskT operator>(Vec a, Vec b) { return {a.v > b.v}; }
  friend MLX_INLINE MaskT operator>=(Vec a, Vec b) { return {a.v >= b.v}; }

  MLX_INLINE Vec& operator+=(Vec b) { return *this = *this + b; }
  MLX_INLINE Vec& operator-=(Vec b) { return *this = *this - b; }
  MLX_INLINE Vec& operator*=(Vec b) { return *this = *this * b; }
};

template <typename T>
MLX_INLINE Vec<T> select(Mask<sizeof(T)> m, Vec<T> a, Vec<T> b) {
  return m.v ? a.v : b.v;
}
/// x where the mask holds, else zero: one AND.
template <typename T>
MLX_INLINE Vec<T> keep_if(Mask<sizeof(T)> m, Vec<T> x) {
  using Bits = typename Vec<T>::Bits;
  return typename Vec<T>::RawT(Bits(m.v) & Bits(x.v));
}

/// The same bits seen as another element type.
template <typename U, typename T>
MLX_INLINE Vec<U> bitcast(Vec<T> x) {
  return typename Vec<U>::RawT(x.v);
}

template <int Bytes>
MLX_INLINE bool any(Mask<Bytes> m) {
#if MLX_ISA_LEVEL >= 4
  return _mm512_movepi8_mask((__m512i)m.v) != 0;
#elif MLX_ISA_LEVEL == 3
  return _mm256_movemask_epi8((__m256i)m.v) != 0;
#else
  return _mm_movemask_epi8((__m128i)m.v) != 0;
#endif
}
template <int Bytes>
MLX_INLINE bool all(Mask<Bytes> m) {
  return !any(!m);
}

#if MLX_ISA_LEVEL >= 4
#define MLX_SIMD(stem) _mm512_##stem
#elif MLX_ISA_LEVEL == 3
#define MLX_SIMD(stem) _mm256_##stem
#else
#define MLX_SIMD(stem) _mm_##stem
#endif

template <typename T>
MLX_INLINE Vec<T> Vec<T>::load_partial(const T* p, size_t n) {
#if MLX_ISA_LEVEL >= 4
  __mmask64 lanes = _bzhi_u64(~0ull, unsigned(n * sizeof(T)));
  return RawT(_mm512_maskz_loadu_epi8(lanes, p));
#else
  Vec r(T(0));
  __builtin_memcpy(&r.v, p, n * sizeof(T));
  return r;
#endif
}

template <typename T>
MLX_INLINE void Vec<T>::store_partial(T* p, size_t n) const {
#if MLX_ISA_LEVEL >= 4
  __mmask64 lanes = _bzhi_u64(~0ull, unsigned(n * sizeof(T)));
  _mm512_mask_storeu_epi8(p, lanes, (__m512i)v);
#else
  __builtin_memcpy(p, &v, n * sizeof(T));
#endif
}

/// a * b + c, rounded once where the machine has FMA.
MLX_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
#if MLX_ISA_LEVEL >= 3
  return MLX_SIMD(fmadd_ps)(a.v, b.v, c.v);
#else
  return a * b + c;
#endif
}
MLX_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
#if MLX_ISA_LEVEL >= 3
  return MLX_SIMD(fmadd_pd)(a.v, b.v, c.v);
#else
  return a * b + c;
#endif
}

/// Hardware order: b when either operand is NaN. One instruction for floats.
template <typename T>
MLX_INLINE Vec<T> max_native(Vec<T> a, Vec<T> b) {
  return a.v > b.v ? a.v : b.v;
}
template <typename T>
MLX_INLINE Vec<T> min_native(Vec<T> a, Vec<T> b) {
  return a.v < b.v ? a.v : b.v;
}
#define MLX_MIN_MAX(type, suffix)                             \
  MLX_INLINE Vec<type> max_native(Vec<type> a, Vec<type> b) { \
    return MLX_SIMD(max_##suffix)(a.v, b.v);                  \
  }                                                           \
  MLX_INLINE Vec<type> min_native(Vec<type> a, Vec<type> b) { \
    return MLX_SIMD(min_##suffix)(a.v, b.v);                  \
  }
MLX_MIN_MAX(float, ps)
MLX_MIN_MAX(double, pd)
#undef MLX_MIN_MAX

/// NumPy's rule: NaN when either operand is NaN.
template <typename T>
MLX_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) {
  Vec<T> m = max_native(a, b);
  return Vec<T>::real ? select(a != a, a, m) : m;
}
template <typename T>
MLX_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) {
  Vec<T> m = min_native(a, b);
  return Vec<T>::real ? select(a != a, a, m) : m;
}

template <typename T>
MLX_INLINE Vec<T> sign_bit() {
  return typename Vec<T>::RawT(
      typename Vec<T>::Bits{} + (UIntFor<T>(1) << (sizeof(T) * 8 - 1)));
}
/// The smallest signed integer stays as it is.
template <typename T>
MLX_INLINE Vec<T> abs(Vec<T> x) {
  if constexpr (Vec<T>::real) {
    return x & ~sign_bit<T>();
  } else if constexpr (T(-1) > T(0)) {
    return x;
  } else {
    return select(x < Vec<T>(T(0)), -x, x);
  }
}
/// The magnitude of x with the sign of s.
template <typename T>
MLX_INLINE Vec<T> copysign(Vec<T> x, Vec<T> s) {
  return (x & ~sign_bit<T>()) | (s & sign_bit<T>());
}

#if MLX_ISA_LEVEL >= 4
#define MLX_ROUND(suffix, x, mode) _mm512_roundscale_##suffix(x, mode)
#else
#define MLX_ROUND(suffix, x, mode) MLX_SIMD(round_##suffix)(x, mode)
#endif
#define MLX_ROUNDING(type, suffix)                                            \
  MLX_INLINE Vec<type> floor(Vec<type> x) {                                   \
    return MLX_ROUND(suffix, x.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); \
  }                                                                           \
  MLX_INLINE Vec<type> ceil(Vec<type> x) {                                    \
    return MLX_ROUND(suffix, x.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); \
  }                                                                           \
  MLX_INLINE Vec<type> trunc(Vec<type> x) {                                   \
    return MLX_ROUND(suffix, x.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);    \
  }                                                                           \
  /* Half to even. */                                                         \
  MLX_INLINE Vec<type> round(Vec<type> x) {                                   \
    return MLX_ROUND(                                                         \
        suffix, x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);          \
  }                                                                           \
  MLX_INLINE Vec<type> sqrt(Vec<type> x) {                                    \
    return MLX_SIMD(sqrt_##suffix)(x.v);                                      \
  }
MLX_ROUNDING(float, ps)
MLX_ROUNDING(double, pd)
#undef MLX_ROUNDING
#undef MLX_ROUND

}  // namespace mlx::core::cpu::MLX_ISA
