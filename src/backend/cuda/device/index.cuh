// From the number of an element in row-major order to where operands have it.
#pragma once

#include "backend/cuda/device/fast_divisor.cuh"
#include "mlx/array.h"

namespace mlx::core::cuda {

/// Axes that a kernel walks, and the strides of its operands in elements.
template <int operands>
struct StridedAxes {
  static constexpr int most = 12;
  int ndim = 0;
  FastDivisor sizes[most];
  int64_t strides[operands][most];

  /// Fills offset[k] for the element number `index` in row-major order.
  template <typename Index>
  __device__ __forceinline__ void locate(
      Index index, int64_t (&offset)[operands]) const {
#pragma unroll
    for (int k = 0; k < operands; ++k) {
      offset[k] = 0;
    }
    for (int i = ndim - 1; i > 0; --i) {
      Index outer;
      if constexpr (sizeof(Index) == 4) {
        outer = sizes[i].quotient(index);
      } else {
        outer = index / sizes[i].divisor;
      }
      auto at = static_cast<int64_t>(index - outer * sizes[i].divisor);
      index = outer;
#pragma unroll
      for (int k = 0; k < operands; ++k) {
        offset[k] += at * strides[k][i];
      }
    }
#pragma unroll
    for (int k = 0; k < operands; ++k) {
      offset[k] += static_cast<int64_t>(index) * strides[k][0];
    }
  }
};

/// Axes of `shape` as every operand walks them, merged where all can. Raises
/// std::invalid_argument naming `op` when more than StridedAxes::most are left.
template <int operands>
StridedAxes<operands> strided_axes(
    const char* op, const Shape& shape, const std::vector<Strides>& strides);

}  // namespace mlx::core::cuda

#include "backend/cuda/device/index_host.h"
