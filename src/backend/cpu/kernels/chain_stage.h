// What the stages of chain.h are written with: their signature, the way to the
// next one, operands in memory and stores past the caches. Included by the
// files that hold stages.
#pragma once

#include "backend/cpu/kernels/chain.h"
#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

using V = Vec<float>;
using Stage = void (*)(const ChainStage*, size_t, V, V, V, V);

#define MLX_NEXT(s) return reinterpret_cast<Stage>((s)->run)((s), i, a, b, c, d)
#define MLX_STAGE(name) \
  void name(const ChainStage* s, size_t i, V a, V b, V c, V d)

ChainFn erased(Stage stage) {
  return reinterpret_cast<ChainFn>(stage);
}

/// Truth values travel as lanes of all bits or none.
MLX_INLINE V lanes(V x) {
  return x;
}
MLX_INLINE V lanes(Mask<4> m) {
  return V(V::RawT(m.v));
}
MLX_INLINE Mask<4> mask(V x) {
  return {(Raw<int32_t, kVecBytes>)x.v};
}

template <typename T>
MLX_INLINE const T* operand(const ChainStage* s, size_t i) {
  return reinterpret_cast<const T*>(
      static_cast<const char*>(s->at) + i * s->stride);
}

/// Asks for the lines of a later group: while registers are worked on, memory
/// would wait.
template <typename T>
MLX_INLINE void prefetch(const T* p, size_t ahead) {
  constexpr size_t kGroupBytes = 4 * V::size * sizeof(T);
  const char* from = reinterpret_cast<const char*>(p) + ahead;
  for (size_t k = 0; k < kGroupBytes; k += 64) {
    __builtin_prefetch(from + k);
  }
}

/// The inverse of a power of two, or 0 where it is not a normal number or y not
/// a power of two. Products with it are the quotients by y, bit for bit.
MLX_INLINE float exact_inverse(float y) {
  uint32_t bits = __builtin_bit_cast(uint32_t, y);
  uint32_t exponent = (bits << 1) >> 24;
  bool exists = (bits & 0x7fffffu) == 0 && exponent - 1 < 253;
  return exists ? __builtin_bit_cast(float, 0x7f000000u - bits) : 0.0f;
}

/// The bytes of `x` past the caches.
template <typename T>
MLX_INLINE void stream_bytes(T x, void* p) {
#if MLX_ISA_LEVEL >= 4
  if constexpr (sizeof(T) == 64) {
    _mm512_stream_si512(
        static_cast<__m512i*>(p), __builtin_bit_cast(__m512i, x));
  }
#endif
#if MLX_ISA_LEVEL >= 3
  if constexpr (sizeof(T) == 32) {
    _mm256_stream_si256(
        static_cast<__m256i*>(p), __builtin_bit_cast(__m256i, x));
  }
#endif
  if constexpr (sizeof(T) == 16) {
    _mm_stream_si128(static_cast<__m128i*>(p), __builtin_bit_cast(__m128i, x));
  } else if constexpr (sizeof(T) == 8) {
    _mm_stream_si64(
        static_cast<long long*>(p), __builtin_bit_cast(long long, x));
  }
}

// The last stage goes on with the next group, for a few groups: where the
// compiler makes calls of the jumps, the stack has to hold them. Sanitizers
// make them, with large frames.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kRun = 4 * V::size;
#else
constexpr size_t kRun = 16 * 4 * V::size;
#endif

}  // namespace

}  // namespace mlx::core::cpu::MLX_ISA
