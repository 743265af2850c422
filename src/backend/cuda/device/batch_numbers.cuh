// Numbers of a list's entries, whose types are known when they are run.
#pragma once

#include "backend/cuda/batch.h"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

__device__ __forceinline__ float load_float(
    const void* from, uint32_t at, uint8_t type) {
  switch (static_cast<Dtype::Val>(type)) {
    case Dtype::Val::float16:
      return to_compute(static_cast<const half*>(from)[at]);
    case Dtype::Val::bfloat16:
      return to_compute(static_cast<const bhalf*>(from)[at]);
    case Dtype::Val::bool_:
      return static_cast<const bool*>(from)[at] ? 1.0f : 0.0f;
    default:
      return static_cast<const float*>(from)[at];
  }
}

__device__ __forceinline__ void store_float(
    void* to, uint32_t at, uint8_t type, float value) {
  switch (static_cast<Dtype::Val>(type)) {
    case Dtype::Val::float16:
      static_cast<half*>(to)[at] = convert<half>(value);
      return;
    case Dtype::Val::bfloat16:
      static_cast<bhalf*>(to)[at] = convert<bhalf>(value);
      return;
    case Dtype::Val::bool_:
      static_cast<bool*>(to)[at] = value != 0.0f;
      return;
    default:
      static_cast<float*>(to)[at] = value;
  }
}

}  // namespace mlx::core::cuda
