// Axes of any length that a kernel walks in row-major order.
#pragma once

#include "backend/cuda/device/index.cuh"

namespace mlx::core::cuda {

struct WalkAxes {
  static constexpr int most = 12;
  int ndim = 0;
  /// Whether 32 bits count the positions.
  bool is_small = true;
  int64_t sizes[most];
  FastDivisor divisors[most];
  int64_t strides[most];

  /// The offset in elements of position `index`.
  __device__ __forceinline__ int64_t at(int64_t index) const {
    if (ndim == 1) {
      return index * strides[0];
    }
    int64_t offset = 0;
    if (is_small) {
      auto left = static_cast<uint32_t>(index);
      for (int i = ndim - 1; i > 0; --i) {
        uint32_t outer = divisors[i].quotient(left);
        offset += (left - outer * divisors[i].divisor) * strides[i];
        left = outer;
      }
      return offset + left * strides[0];
    }
    for (int i = ndim - 1; i > 0; --i) {
      int64_t outer = index / sizes[i];
      offset += (index - outer * sizes[i]) * strides[i];
      index = outer;
    }
    return offset + index * strides[0];
  }
};

}  // namespace mlx::core::cuda
