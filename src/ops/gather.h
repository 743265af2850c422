// Reading slices, or single elements along an axis, at positions that index
// arrays give.
#pragma once

#include "ops/indexing.h"
#include "ops/rules.h"
#include "ops/structured.h"

namespace mlx::core {

/// Index array i tells where slices begin along axes[i].
struct GatherParams {
  std::vector<int> axes;
  Shape slice_sizes;
  bool operator==(const GatherParams&) const = default;
};

/// Inputs: array, then index arrays of any integer types whose shapes
/// broadcast together. Output: the indices' shape, then the slices'.
class Gather final : public Structured<Gather, GatherParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Gather";
  MLX_ALL_RULES()
};

/// Inputs: array, indices; their shapes are equal beside `axis`.
class GatherAxis final : public Structured<GatherAxis, AxisParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "GatherAxis";
  MLX_ALL_RULES()
};

/// Arrays of equal rank broadcast to each other everywhere but at `axis`.
/// Raises std::invalid_argument naming `op` when that fails.
std::vector<array> broadcast_beside_axis(
    const char* op, const std::vector<array>& arrays, int axis, Stream s);

}  // namespace mlx::core
