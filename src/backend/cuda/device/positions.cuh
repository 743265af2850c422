// Where slices begin that index arrays position: shared by all reading and
// writing at positions.
#pragma once

#include "backend/cuda/device/fault.cuh"
#include "backend/cuda/device/index.cuh"
#include "mlx/dtype.h"

namespace mlx::core::cuda {

/// One index array, and the axis of the indexed array that it speaks of.
struct IndexArray {
  const void* data;
  Dtype::Val type;
  int64_t length;  // of the axis
  int64_t last;    // the last position where a slice fits, not below 0
  int64_t stride;  // of the axis in the indexed array
};

/// `count` positions in row-major order of some shape. For each one the
/// offset of its slice in the indexed array and, for writing, in the updates.
/// An index below 0 counts from the end; one that is outside even then moves
/// to the nearest position (reading) or leaves its position out (writing):
/// no address is ever out of bounds. Where MLX_CHECK_INDICES asks for it, the
/// host is told.
struct Positions {
  static constexpr int most_arrays = 10;
  static constexpr int most_axes = 10;

  int64_t count = 1;
  int arrays = 0;
  int ndim = 0;
  bool clamps = true;
  FaultSite fault;
  FastDivisor sizes[most_axes];
  int64_t target_strides[most_axes];
  int64_t update_strides[most_axes];
  int64_t index_strides[most_arrays][most_axes];
  IndexArray index[most_arrays];

  /// The offset of position p of an operand with these strides.
  template <typename Index>
  __device__ __forceinline__ int64_t
  walk(Index p, const int64_t (&strides)[most_axes]) const {
    int64_t offset = 0;
    for (int i = ndim - 1; i > 0; --i) {
      Index outer;
      if constexpr (sizeof(Index) == 4) {
        outer = sizes[i].quotient(p);
      } else {
        outer = p / sizes[i].divisor;
      }
      offset += static_cast<int64_t>(p - outer * sizes[i].divisor) * strides[i];
      p = outer;
    }
    return ndim ? offset + static_cast<int64_t>(p) * strides[0] : 0;
  }

  /// The offset of the slice of position p in the indexed array; false when
  /// the position is left out.
  template <typename Index>
  __device__ __forceinline__ bool locate(Index p, int64_t& target) const {
    target = walk(p, target_strides);
    for (int k = 0; k < arrays; ++k) {
      const IndexArray& a = index[k];
      int64_t given = load(a, walk(p, index_strides[k]));
      int64_t at = given < 0 ? given + a.length : given;
      if (at < 0 || at > a.last) {
        fault.report(Fault::outside, given, a.length, a.last);
        if (!clamps) {
          return false;
        }
        at = at < 0 ? 0 : a.last;
      }
      target += at * a.stride;
    }
    return true;
  }

 private:
  static __device__ __forceinline__ int64_t
  load(const IndexArray& a, int64_t i) {
    switch (a.type) {
      case Dtype::Val::uint8:
        return static_cast<const uint8_t*>(a.data)[i];
      case Dtype::Val::uint16:
        return static_cast<const uint16_t*>(a.data)[i];
      case Dtype::Val::uint32:
        return static_cast<const uint32_t*>(a.data)[i];
      case Dtype::Val::int8:
        return static_cast<const int8_t*>(a.data)[i];
      case Dtype::Val::int16:
        return static_cast<const int16_t*>(a.data)[i];
      case Dtype::Val::int32:
        return static_cast<const int32_t*>(a.data)[i];
      case Dtype::Val::int64:
        return static_cast<const int64_t*>(a.data)[i];
      default: {
        auto raw = static_cast<const uint64_t*>(a.data)[i];
        return raw > uint64_t(INT64_MAX) ? INT64_MAX
                                         : static_cast<int64_t>(raw);
      }
    }
  }
};

}  // namespace mlx::core::cuda
