// Numbers of a list's entries, whose types are known when they are run.
#pragma once

#include "backend/cuda/batch.h"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

/// Asks for `bytes` from `at` on, whole pieces of 16 bytes, into the L2 cache.
__device__ __forceinline__ void prefetch_bytes(
    const void* from, uint64_t at, uint32_t bytes) {
  uint64_t begin = reinterpret_cast<uint64_t>(from) + at;
  uint32_t size = (static_cast<uint32_t>(begin % 16) + bytes + 15) / 16 * 16;
  asm volatile(
      "cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(begin & ~uint64_t{15}),
      "r"(size)
      : "memory");
}

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

__device__ __forceinline__ int64_t
load_whole(const void* from, uint32_t at, uint8_t type) {
  switch (static_cast<Dtype::Val>(type)) {
    case Dtype::Val::bool_:
      return static_cast<const bool*>(from)[at] ? 1 : 0;
    case Dtype::Val::uint32:
      return static_cast<const uint32_t*>(from)[at];
    case Dtype::Val::int64:
      return static_cast<const int64_t*>(from)[at];
    default:
      return static_cast<const int32_t*>(from)[at];
  }
}

// Of a number too large, the lowest bits stay.
__device__ __forceinline__ void store_whole(
    void* to, uint32_t at, uint8_t type, int64_t value) {
  switch (static_cast<Dtype::Val>(type)) {
    case Dtype::Val::bool_:
      static_cast<bool*>(to)[at] = value != 0;
      return;
    case Dtype::Val::int64:
      static_cast<int64_t*>(to)[at] = value;
      return;
    case Dtype::Val::float32:
      static_cast<float*>(to)[at] = static_cast<float>(value);
      return;
    default:
      static_cast<uint32_t*>(to)[at] = static_cast<uint32_t>(value);
  }
}

}  // namespace mlx::core::cuda
