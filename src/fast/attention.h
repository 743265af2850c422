// The primitive of scaled dot-product attention.
#pragma once

#include "fast/fused.h"

namespace mlx::core::fast {

struct AttentionParams {
  float scale;
  bool causal;
  bool has_mask;
  bool has_sinks;
  bool operator==(const AttentionParams&) const = default;
};

/// Inputs: queries, keys, values of one real type, then the mask (bool or
/// that type, 4-d, broadcasting to the scores), then the sinks.
class ScaledDotProductAttention final
    : public Fused<ScaledDotProductAttention, AttentionParams> {
 public:
  using Fused::Fused;
  static constexpr const char* kName = "ScaledDotProductAttention";

  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    Shape shape = inputs[0].shape();
    shape.back() = inputs[2].shape(-1);
    return {shape};
  }
};

}  // namespace mlx::core::fast
