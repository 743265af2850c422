// Normalisation of the last axis as fused operations.
#pragma once

#include "fast/fused.h"
#include "ops/row_wise.h"
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

class RMSNorm final : public Fused<RMSNorm, NormParams>, public RowWise {
 public:
  using Fused::Fused;
  static constexpr const char* kName = "RMSNorm";
  array compose(const std::vector<array>& inputs) const override {
    return fallback()(inputs)[0];
  }
  Batched vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
};

class LayerNorm final : public Fused<LayerNorm, NormParams>, public RowWise {
 public:
  using Fused::Fused;
  static constexpr const char* kName = "LayerNorm";
  array compose(const std::vector<array>& inputs) const override {
    return fallback()(inputs)[0];
  }
  Batched vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
};

}  // namespace mlx::core::fast
