// Vec<bool>: one byte per lane holding 0 or 1, with the arithmetic the library
// gives bool: + is or, - is exclusive or, * is and.
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

}  // namespace mlx::core::cpu::MLX_ISA
