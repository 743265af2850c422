// Every type as unsigned integers in the same order: then one sort serves all.
// The type is told at run time; a launch takes one way through the switch.
#pragma once

#include <cstdint>

#include "mlx/dtype.h"

namespace mlx::core::cuda {

/// Floats of these bits, where `infinity` is that of the positive one: NaN
/// above everything; zeros of both signs equal when `merge_zeros` (for a
/// stable order), else -0 first (so that keys can be turned back).
template <typename U>
__device__ __forceinline__ U
key_of_float(U bits, U infinity, bool merge_zeros) {
  constexpr U kSign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  U magnitude = static_cast<U>(bits & ~kSign);
  if (magnitude > infinity) {
    return static_cast<U>(~U(0));
  }
  if (merge_zeros && magnitude == 0) {
    return kSign;
  }
  return static_cast<U>(bits & kSign ? ~bits : bits | kSign);
}

template <typename U>
__device__ __forceinline__ U float_of_key(uint64_t wide) {
  constexpr U kSign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  auto key = static_cast<U>(wide);
  return static_cast<U>(key & kSign ? key & ~kSign : ~key);
}

/// The key of element i of an array; its upper bits are 0.
__device__ __forceinline__ uint64_t
load_key(const void* x, Dtype::Val type, int64_t i, bool merge_zeros) {
  auto* bytes = static_cast<const uint8_t*>(x);
  auto* halves = static_cast<const uint16_t*>(x);
  auto* words = static_cast<const uint32_t*>(x);
  auto* longs = static_cast<const uint64_t*>(x);
  constexpr uint32_t kInfinity = 0x7f800000u;
  switch (type) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return bytes[i];
    case Dtype::Val::int8:
      return bytes[i] ^ 0x80u;
    case Dtype::Val::uint16:
      return halves[i];
    case Dtype::Val::int16:
      return halves[i] ^ 0x8000u;
    case Dtype::Val::float16:
      return key_of_float<uint16_t>(halves[i], 0x7c00, merge_zeros);
    case Dtype::Val::bfloat16:
      return key_of_float<uint16_t>(halves[i], 0x7f80, merge_zeros);
    case Dtype::Val::uint32:
      return words[i];
    case Dtype::Val::int32:
      return words[i] ^ 0x80000000u;
    case Dtype::Val::float32:
      return key_of_float<uint32_t>(words[i], kInfinity, merge_zeros);
    case Dtype::Val::uint64:
      return longs[i];
    case Dtype::Val::int64:
      return longs[i] ^ (uint64_t(1) << 63);
    case Dtype::Val::float64:
      return key_of_float<uint64_t>(
          longs[i], uint64_t(0x7ff) << 52, merge_zeros);
    default: {
      // Complex: real part, then imaginary; NaN when either is.
      uint64_t both = longs[i];
      uint64_t re = key_of_float<uint32_t>(
          static_cast<uint32_t>(both), kInfinity, merge_zeros);
      uint64_t im = key_of_float<uint32_t>(
          static_cast<uint32_t>(both >> 32), kInfinity, merge_zeros);
      bool is_nan = re == 0xffffffffu || im == 0xffffffffu;
      return is_nan ? ~uint64_t(0) : (re << 32) | im;
    }
  }
}

/// Writes element i with that key.
__device__ __forceinline__ void store_key(
    void* x, Dtype::Val type, int64_t i, uint64_t key) {
  auto* bytes = static_cast<uint8_t*>(x);
  auto* halves = static_cast<uint16_t*>(x);
  auto* words = static_cast<uint32_t*>(x);
  auto* longs = static_cast<uint64_t*>(x);
  switch (type) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      bytes[i] = static_cast<uint8_t>(key);
      return;
    case Dtype::Val::int8:
      bytes[i] = static_cast<uint8_t>(key ^ 0x80u);
      return;
    case Dtype::Val::uint16:
      halves[i] = static_cast<uint16_t>(key);
      return;
    case Dtype::Val::int16:
      halves[i] = static_cast<uint16_t>(key ^ 0x8000u);
      return;
    case Dtype::Val::float16:
    case Dtype::Val::bfloat16:
      halves[i] = float_of_key<uint16_t>(key);
      return;
    case Dtype::Val::uint32:
      words[i] = static_cast<uint32_t>(key);
      return;
    case Dtype::Val::int32:
      words[i] = static_cast<uint32_t>(key) ^ 0x80000000u;
      return;
    case Dtype::Val::float32:
      words[i] = float_of_key<uint32_t>(key);
      return;
    case Dtype::Val::uint64:
      longs[i] = key;
      return;
    case Dtype::Val::int64:
      longs[i] = key ^ (uint64_t(1) << 63);
      return;
    case Dtype::Val::float64:
      longs[i] = float_of_key<uint64_t>(key);
      return;
    default:
      longs[i] = uint64_t(float_of_key<uint32_t>(key >> 32)) |
                 uint64_t(float_of_key<uint32_t>(key)) << 32;
  }
}

}  // namespace mlx::core::cuda
