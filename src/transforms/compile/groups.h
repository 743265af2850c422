// Which nodes of a trace are computed together: found here, made into new nodes
// by fuse.
#pragma once

#include <string>
#include <vector>

#include "mlx/api.h"
#include "transforms/compile/traced_graph.h"

namespace mlx::core::detail {

/// What a node can be in a fused part; `other` is never in one.
enum class NodeKind { other, elementwise, cast, reduce };

struct NodeGroup {
  /// None where they went to another group.
  std::vector<int> nodes;
  /// What the elements go over.
  Shape shape;
  bool reduces = false;
  /// At least as many arrays as it reads and makes for others.
  size_t arrays = 0;
};

struct Grouping {
  explicit Grouping(const TracedGraph& graph);

  /// By node.
  std::vector<NodeKind> kinds;
  /// By node, -1 for those that stay alone.
  std::vector<int> group_of;
  std::vector<NodeGroup> groups;
  /// What finding them took: how many nodes searches for paths went to.
  size_t looked_at = 0;

  /// By value, as of the graph.
  std::vector<std::vector<int>> users;
  std::vector<char> is_output;

  /// Whether a value is wanted outside of two groups, which may be one.
  bool leaves(int value, int a, int b) const;
};

/// The groups of two nodes and more, members ascending. With `boundaries`, adds
/// a line to it for each neighbour that is not part of the group of another.
MLX_API Grouping find_groups(const TracedGraph& graph, std::string* boundaries);

}  // namespace mlx::core::detail
