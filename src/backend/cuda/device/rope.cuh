// The angle by which rotary encoding turns a pair of features.
#pragma once

#include <cstdint>

namespace mlx::core::cuda {

/// Pair i of the token at `position`. `freqs` are divisors of the positions;
/// null: pair i turns by 2^(i * exponent).
__device__ __forceinline__ float rope_angle(
    float position,
    int64_t i,
    const float* freqs,
    int64_t freqs_stride,
    double exponent,
    float scale,
    bool forward) {
  float inverse =
      freqs ? 1.0f / freqs[i * freqs_stride]
            : static_cast<float>(exp2(static_cast<double>(i) * exponent));
  float theta = position * scale * inverse;
  return forward ? theta : -theta;
}

}  // namespace mlx::core::cuda
