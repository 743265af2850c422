// Division by sizes of axes.
#pragma once

#include <cstdint>

namespace mlx::core::cuda {

/// Division by a number known at launch: a multiplication and a shift, for
/// dividends below 2^31 (Granlund and Montgomery, "Division by invariant
/// integers using multiplication").
struct FastDivisor {
  uint32_t divisor = 1;
  uint32_t multiplier = 0;
  uint32_t shift = 0;

  FastDivisor() = default;
  explicit FastDivisor(uint32_t d) : divisor(d) {
    while (shift < 32 && (uint64_t(1) << shift) < d) {
      ++shift;
    }
    uint64_t one = 1;
    multiplier =
        static_cast<uint32_t>(((one << 32) * ((one << shift) - d)) / d + 1);
  }
  __device__ __forceinline__ uint32_t quotient(uint32_t n) const {
    return (__umulhi(n, multiplier) + n) >> shift;
  }
};

}  // namespace mlx::core::cuda
