// Small arithmetic of those who lay work over blocks and threads, and axes as
// kernels walk them.
#pragma once

#include <vector>

#include "backend/common/reduce_plan.h"
#include "backend/cuda/device/walk_axes.cuh"
#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

inline int64_t ceil_div(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

/// The smallest power of two that is at least n.
inline int64_t power_of_two(int64_t n) {
  int64_t p = 1;
  while (p < n) {
    p *= 2;
  }
  return p;
}

inline int log2_of(int64_t power) {
  int bits = 0;
  while (power > 1) {
    power /= 2;
    ++bits;
  }
  return bits;
}

/// Half as many threads as the device holds: fewer leave memory idle.
inline int64_t device_threads() {
  return int64_t(1024) * device_facts().multiprocessors;
}

/// At most WalkAxes::most axes.
inline WalkAxes walk_axes(const std::vector<PlanAxis>& axes) {
  WalkAxes walk;
  walk.ndim = static_cast<int>(axes.size());
  walk.is_small = count(axes) < (int64_t(1) << 31);
  for (int i = 0; i < walk.ndim; ++i) {
    walk.sizes[i] = axes[i].size;
    walk.strides[i] = axes[i].stride;
    if (walk.is_small && axes[i].size > 0) {
      walk.divisors[i] = FastDivisor(static_cast<uint32_t>(axes[i].size));
    }
  }
  return walk;
}

}  // namespace mlx::core::cuda
