// Whether two groups of nodes can become one: not if a path leaves the first,
// goes through other nodes and comes to the second, since these nodes would
// have to run both after and before the one operation.
#pragma once

#include <span>
#include <vector>

#include "transforms/compile/groups.h"

namespace mlx::core::detail {

/// Looks from both ends, each time from the one where less has been looked at:
/// most joins have an end with little behind it (a new node with one producer,
/// a group that nothing else reads yet), however large the graph is.
class DetourSearch {
 public:
  DetourSearch(const TracedGraph& graph, const Grouping& grouping)
      : graph_(graph),
        grouping_(grouping),
        found_by_(graph.nodes.size()),
        found_from_(graph.nodes.size(), -1),
        jumps_(graph.nodes.size(), -1) {}

  /// Group `b` reads results of group `a`. Nodes behind `last` are in no group
  /// yet, so no path comes back from them.
  bool exists(int a, int b, int last);

  /// Of all searches, how many neighbours they went to.
  size_t looked_at() const { return looked_at_; }

 private:
  /// Groups are entered and left as one, their first node stands for them.
  struct End {
    int start;
    std::vector<int> waiting;
    unsigned mark;
    size_t looked_at = 0;
  };

  End start(int group);
  size_t cost(const End& end) const;
  bool go_down(End& down, const End& up, int last);
  bool go_up(End& up, const End& down);
  bool goes_to(End& end, const End& other, int from, int neighbour);
  void remember(const End& down, const End& up, int above, int below);
  int first_of(int node) const;
  std::span<const int> members(const int& node) const;

  const TracedGraph& graph_;
  const Grouping& grouping_;
  size_t looked_at_ = 0;
  unsigned marks_ = 0;
  /// By node, the mark of the end that came to it last.
  std::vector<unsigned> found_by_;
  /// And the one from which it came.
  std::vector<int> found_from_;
  /// By node, one that a path is known to lead to, or -1. Layers of a network
  /// and their derivatives are nested: what was found for one is most of the
  /// way for the next.
  std::vector<int> jumps_;
};

}  // namespace mlx::core::detail
