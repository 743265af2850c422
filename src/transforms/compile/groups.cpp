// Finding groups: nodes of one iteration shape that are connected join, one
// after the other in the order of the trace.
#include "transforms/compile/groups.h"

#include <algorithm>
#include <sstream>
#include <typeinfo>

#include "mlx/utils.h"
#include "ops/elementwise_primitive.h"
#include "ops/reduce.h"
#include "ops/views.h"
#include "transforms/compile/detour.h"

namespace mlx::core::detail {

namespace {

// Beyond these a part would not fit where kernels keep their arguments, or
// would take long to be made; chains go on in the next part.
constexpr size_t kMostArrays = 256;
constexpr size_t kMostSteps = 512;

// Rows are combined by one worker each: few long ones would leave the others
// idle.
constexpr int64_t kLongRow = 1 << 16;
constexpr int64_t kManyRows = 256;

// The shape of one value for each row.
Shape row_shape(Shape shape) {
  if (!shape.empty()) {
    shape.back() = 1;
  }
  return shape;
}

NodeKind kind_of(const TracedGraph& graph, const TracedNode& node) {
  const Primitive& p = *node.primitive;
  if (typeid(p) == typeid(Elementwise)) {
    return NodeKind::elementwise;
  }
  if (typeid(p) == typeid(AsType)) {
    return NodeKind::cast;
  }
  if (typeid(p) == typeid(Reduce)) {
    const auto& params = static_cast<const Reduce&>(p).params();
    const TracedValue& in = graph.values[node.inputs[0]];
    int last = static_cast<int>(in.shape.size()) - 1;
    bool over_rows = params.axes == std::vector<int>{last};
    return over_rows && suits_rows(graph, in) ? NodeKind::reduce
                                              : NodeKind::other;
  }
  return NodeKind::other;
}

class GroupFinder {
 public:
  GroupFinder(const TracedGraph& graph, bool report)
      : graph_(graph),
        report_(report),
        found_(graph),
        detours_(graph, found_),
        counted_by_(graph.values.size()) {}

  void run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      found_.kinds[n] = kind_of(graph_, graph_.nodes[n]);
      if (found_.kinds[n] != NodeKind::other) {
        place(static_cast<int>(n));
      }
    }
    found_.looked_at = detours_.looked_at();
    drop_small_groups();
    for (NodeGroup& group : found_.groups) {
      std::sort(group.nodes.begin(), group.nodes.end());
    }
  }

  Grouping take() { return std::move(found_); }
  std::string boundaries() const { return boundaries_.str(); }

 private:
  const Shape& result_shape(int n) const {
    return graph_.values[graph_.nodes[n].outputs[0]].shape;
  }
  const Shape& element_shape(int n) const {
    return found_.kinds[n] == NodeKind::reduce
               ? graph_.values[graph_.nodes[n].inputs[0]].shape
               : result_shape(n);
  }
  Stream stream_of(int n) const { return graph_.nodes[n].primitive->stream(); }

  // Gives a node a group of its own and joins it with those it reads from.
  void place(int n) {
    const TracedNode& node = graph_.nodes[n];
    found_.group_of[n] = static_cast<int>(found_.groups.size());
    found_.groups.push_back(
        {{n},
         element_shape(n),
         found_.kinds[n] == NodeKind::reduce,
         node.inputs.size() + 1});
    for (int in : node.inputs) {
      int producer = graph_.values[in].node;
      if (producer < 0) {
        continue;
      }
      int theirs = found_.group_of[producer];
      if (theirs < 0) {
        note(producer, n, "it is of another kind");
      } else if (theirs != found_.group_of[n]) {
        join(theirs, found_.group_of[n], producer, n);
      }
    }
  }

  void join(int a, int b, int producer, int n) {
    Shape shape;
    size_t arrays = 0;
    const char* obstacle = nullptr;
    if (stream_of(producer) != stream_of(n)) {
      obstacle = "they run on different streams";
    } else if (!common_shape(a, b, shape)) {
      obstacle = "their shapes differ";
    } else if (too_large(a, b, arrays)) {
      obstacle = "the part would be too large";
    } else if (detours_.exists(a, b, n)) {
      obstacle = "what lies between them cannot be part of it";
    }
    if (obstacle) {
      note(producer, n, obstacle);
      return;
    }
    bool reduces = found_.groups[a].reduces || found_.groups[b].reduces;
    if (found_.groups[a].nodes.size() < found_.groups[b].nodes.size()) {
      std::swap(a, b);  // few nodes move
    }
    std::vector<int> moved = std::move(found_.groups[b].nodes);
    found_.groups[b].nodes.clear();
    for (int node : moved) {
      found_.group_of[node] = a;
    }
    NodeGroup& whole = found_.groups[a];
    whole.nodes.insert(whole.nodes.end(), moved.begin(), moved.end());
    whole.shape = std::move(shape);
    whole.reduces = reduces;
    whole.arrays = arrays;
  }

  // The shape that both groups can go over, results of a being read by b.
  bool common_shape(int a, int b, Shape& shape) const {
    const NodeGroup& first = found_.groups[a];
    const NodeGroup& second = found_.groups[b];
    shape = first.shape;
    if (first.shape == second.shape) {
      return true;
    }
    if (first.reduces) {
      // Goes on with the rows' values.
      return row_shape(first.shape) == second.shape && !second.reduces;
    }
    shape = second.shape;
    bool for_rows = !graph_.shapeless && row_shape(second.shape) == first.shape;
    return for_rows || (first.shape.empty() && only_read_by(a, b));
  }

  // A single value that others read too is better computed once, alone.
  bool only_read_by(int a, int b) const {
    const std::vector<int>& nodes = found_.groups[a].nodes;
    return std::none_of(nodes.begin(), nodes.end(), [&](int node) {
      return found_.leaves(graph_.nodes[node].outputs[0], a, b);
    });
  }

  // Counts arrays only where the sum says that there may be too many: a group
  // has most of its arrays from few members, so that is seldom.
  bool too_large(int a, int b, size_t& arrays) {
    const NodeGroup& first = found_.groups[a];
    const NodeGroup& second = found_.groups[b];
    if (first.nodes.size() + second.nodes.size() > kMostSteps) {
      return true;
    }
    arrays = first.arrays + second.arrays;
    if (arrays > kMostArrays) {
      arrays = count_arrays(a, b);
    }
    return arrays > kMostArrays;
  }

  size_t count_arrays(int a, int b) {
    ++counts_;
    size_t count = 0;
    for (int group : {a, b}) {
      for (int node : found_.groups[group].nodes) {
        for (int in : graph_.nodes[node].inputs) {
          int producer = graph_.values[in].node;
          int made_by = producer < 0 ? -1 : found_.group_of[producer];
          if (made_by != a && made_by != b && counted_by_[in] != counts_) {
            counted_by_[in] = counts_;
            ++count;
          }
        }
        count += found_.leaves(graph_.nodes[node].outputs[0], a, b) ? 1 : 0;
      }
    }
    return count;
  }

  bool worth_it(const NodeGroup& group) const {
    if (group.nodes.size() < 2) {
      return false;
    }
    if (!group.reduces) {
      return true;
    }
    return std::any_of(group.nodes.begin(), group.nodes.end(), [&](int node) {
      return found_.kinds[node] != NodeKind::reduce &&
             result_shape(node) == group.shape;
    });
  }

  void drop_small_groups() {
    for (NodeGroup& group : found_.groups) {
      if (!worth_it(group)) {
        for (int node : group.nodes) {
          found_.group_of[node] = -1;
        }
        group.nodes.clear();
      }
    }
  }

  void note(int producer, int n, const char* why) {
    if (report_) {
      boundaries_ << "  " << graph_.nodes[producer].primitive->name()
                  << " of shape " << result_shape(producer)
                  << " is not part of " << graph_.nodes[n].primitive->name()
                  << " of shape " << result_shape(n) << ": " << why << "\n";
    }
  }

  const TracedGraph& graph_;
  bool report_;
  std::ostringstream boundaries_;
  Grouping found_;
  DetourSearch detours_;
  unsigned counts_ = 0;
  /// By value, the last count that it was part of.
  std::vector<unsigned> counted_by_;
};

}  // namespace

Grouping::Grouping(const TracedGraph& graph)
    : kinds(graph.nodes.size()),
      group_of(graph.nodes.size(), -1),
      users(graph.users()),
      is_output(graph.output_marks()) {}

bool Grouping::leaves(int value, int a, int b) const {
  return is_output[value] != 0 ||
         std::any_of(users[value].begin(), users[value].end(), [&](int user) {
           return group_of[user] != a && group_of[user] != b;
         });
}

bool suits_rows(const TracedGraph& graph, const TracedValue& value) {
  if (value.dtype == complex64 || value.shape.empty()) {
    return false;
  }
  if (graph.shapeless) {
    return true;
  }
  int64_t length = value.shape.back();
  int64_t size = value.size();
  return length > 1 && size > 0 &&
         (length <= kLongRow || size / length >= kManyRows);
}

Grouping find_groups(const TracedGraph& graph, std::string* boundaries) {
  GroupFinder finder(graph, boundaries != nullptr);
  finder.run();
  if (boundaries) {
    *boundaries += finder.boundaries();
  }
  return finder.take();
}

}  // namespace mlx::core::detail
