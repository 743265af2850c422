// Sums over the lanes of four vectors at once: a quarter of the shuffles that
// one by one they would take.
#pragma once

#include "backend/cpu/simd/vec.h"

namespace mlx::core::cpu::MLX_ISA {

/// Four lanes whose sum is that of all lanes.
MLX_INLINE __m128 fold_lanes(__m128 v) {
  return v;
}
#if MLX_ISA_LEVEL >= 3
MLX_INLINE __m128 fold_lanes(__m256 v) {
  return _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
}
#endif
#if MLX_ISA_LEVEL >= 4
MLX_INLINE __m128 fold_lanes(__m512 v) {
  return fold_lanes(_mm512_castps512_ps256(v) + _mm512_extractf32x8_ps(v, 1));
}
#endif

/// The sum of the lanes of a, of b, of c, of d.
MLX_INLINE __m128 lane_sums(__m128 a, __m128 b, __m128 c, __m128 d) {
  __m128 ab = _mm_unpacklo_ps(a, b) + _mm_unpackhi_ps(a, b);
  __m128 cd = _mm_unpacklo_ps(c, d) + _mm_unpackhi_ps(c, d);
  return _mm_movelh_ps(ab, cd) + _mm_movehl_ps(cd, ab);
}

}  // namespace mlx::core::cpu::MLX_ISA
