// A traced function as data: values by number and the nodes that make them.
// Passes rewrite it; replay builds arrays from it for new inputs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/postponed.h"
#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"

namespace mlx::core::detail {

struct TracedValue {
  Shape shape;
  Dtype dtype;
  /// What the function found outside of its inputs.
  std::optional<array> constant;
  /// The node that makes it, -1 for inputs and constants.
  int node = -1;

  int64_t size() const;
};

struct TracedNode {
  std::shared_ptr<Primitive> primitive;
  std::vector<int> inputs;
  std::vector<int> outputs;
  /// Of a fused part without final shapes: what it was made of.
  std::shared_ptr<const struct TracedGraph> unfused;
  /// The primitive where it has to be asked for nodes.
  const Postponed* postponed = nullptr;
};

struct TracedGraph {
  std::vector<TracedValue> values;
  /// Nodes come behind those whose results they read.
  std::vector<TracedNode> nodes;
  std::vector<int> inputs;
  std::vector<int> outputs;
  /// Whether shapes may differ from those of the trace.
  bool shapeless = false;

  bool is_constant(int value) const {
    return values[value].constant.has_value();
  }
  /// Whether it is one number, known while compiling.
  bool is_number(int value) const;

  /// By value, the nodes that read it.
  std::vector<std::vector<int>> users() const;
  /// By value, whether it is one of the outputs.
  std::vector<char> output_marks() const;
  /// Drops nodes that no output needs, or whose result is a constant by now.
  void remove_unused();

  /// New arrays for the outputs from new inputs.
  std::vector<array> replay(const std::vector<array>& given) const;
};

/// Runs `fun` on placeholders with the shapes and types of `inputs`.
TracedGraph trace_function(
    const ArrayFn& fun, const std::vector<array>& inputs, bool shapeless);

/// Merges equal constants and equal nodes, takes out copies and casts that do
/// nothing.
void simplify(TracedGraph& graph);

/// Whether rows of such a value can be reduced inside of a fused part.
bool suits_rows(const TracedGraph& graph, const TracedValue& value);

/// Takes operations along rows apart that can be fused with a neighbour; final
/// shapes wanted.
void expand(TracedGraph& graph);

/// Replaces connected elementwise operations and reductions of the last axis
/// by fused parts. With `report`, says what and why.
MLX_API void fuse(TracedGraph& graph, std::string* report = nullptr);

}  // namespace mlx::core::detail
