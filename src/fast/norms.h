// Normalisation of the last axis as fused operations.
#pragma once

#include "fast/fused.h"
#include "ops/rules.h"

namespace mlx::core::fast {

/// Inputs are x and, where there are any, weight and bias, of one real
/// floating type.
struct NormParams {
  float eps;
  bool has_weight;
  bool has_bias;
  bool operator==(const NormParams&) const = default;
};

class RMSNorm final : public Fused<RMSNorm, NormParams> {
 public:
  using Fused::Fused;
  static constexpr const char* kName = "RMSNorm";
  Batched vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
};

class LayerNorm final : public Fused<LayerNorm, NormParams> {
 public:
  using Fused::Fused;
  static constexpr const char* kName = "LayerNorm";
  Batched vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
};

}  // namespace mlx::core::fast
