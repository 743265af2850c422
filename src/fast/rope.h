// The primitive of rotary position encoding.
#pragma once

#include "fast/fused.h"

namespace mlx::core::fast {

struct RoPEParams {
  int dims;
  bool traditional;
  /// 0 when the divisors are an input.
  float base;
  float scale;
  /// Turns by the negative angles when false.
  bool forward;
  bool operator==(const RoPEParams&) const = default;
};

/// Inputs: x (B, ..., T, D), offset (int32, 0-d or (B,)), maybe freqs
/// (float32, dims / 2).
class RoPE final : public Fused<RoPE, RoPEParams> {
 public:
  using Fused::Fused;
  static constexpr const char* kName = "RoPE";

  std::vector<array> vjp(
      const std::vector<array>& primals,
      const std::vector<array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<array>& outputs) override;
};

}  // namespace mlx::core::fast
