// Writing slices, or single elements along an axis, at positions that index
// arrays or a mask give.
#pragma once

#include "ops/indexing.h"
#include "ops/rules.h"
#include "ops/structured.h"

namespace mlx::core {

/// Index array i tells where updates begin along axes[i].
struct ScatterParams {
  Accumulate mode;
  std::vector<int> axes;
  bool operator==(const ScatterParams&) const = default;
};

/// Inputs: source, index arrays, updates. The shape of the updates is the
/// indices' common shape, then that of a slice. Updates count in row-major
/// order: without accumulation the last one at a place stays, and sums round
/// in the same order on any number of threads.
class Scatter final : public Structured<Scatter, ScatterParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Scatter";
  MLX_ALL_RULES()
};

/// `mode` is none or sum.
struct ScatterAxisParams {
  Accumulate mode;
  int axis;
  bool operator==(const ScatterAxisParams&) const = default;
};

/// Inputs: source, indices, values of the indices' shape.
class ScatterAxis final : public Structured<ScatterAxis, ScatterAxisParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "ScatterAxis";
  MLX_ALL_RULES()
};

/// Inputs: source, mask with the source's leading axes, rows of shape (count,
/// remaining axes of the source). Where the mask is true, rows in order.
class MaskedScatter final : public Structured<MaskedScatter> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "MaskedScatter";
  MLX_ALL_RULES()
};

}  // namespace mlx::core
