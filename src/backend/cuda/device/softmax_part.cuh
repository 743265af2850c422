// Softmaxes over some of the keys (maximum, sum, weighted values), which
// attention joins.
#pragma once

#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

constexpr float kLog2E = 1.4426950408889634f;

__device__ __forceinline__ float safe(float maximum) {
  return maximum == -INFINITY ? 0.0f : maximum;
}

// Joins two partial softmaxes: (maximum, sum, weighted values).
__device__ __forceinline__ void join_partials(
    float& m,
    float& l,
    float (&acc)[8],
    float m2,
    float l2,
    const float (&acc2)[8]) {
  float most = fmaxf(m, m2);
  float a = exp2f(m - safe(most));
  float b = exp2f(m2 - safe(most));
  m = most;
  l = l * a + l2 * b;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    acc[i] = acc[i] * a + acc2[i] * b;
  }
}

}  // namespace mlx::core::cuda
