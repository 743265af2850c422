// Taking norms and softmax apart where a neighbour can be computed with them:
// then the rows are read once for both.
#include <algorithm>
#include <typeinfo>

#include "backend/backend.h"
#include "ops/elementwise_primitive.h"
#include "ops/row_wise.h"
#include "ops/views.h"
#include "transforms/compile/traced_graph.h"

namespace mlx::core::detail {

namespace {

class Expander {
 public:
  explicit Expander(TracedGraph& graph)
      : graph_(graph), users_(graph.users()) {}

  void run() {
    std::vector<TracedNode> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const TracedNode& node : old) {
      elementwise_.push_back(is_elementwise(node));
    }
    for (const TracedNode& node : old) {
      const auto* op = dynamic_cast<const RowWise*>(node.primitive.get());
      if (op && has_neighbour(node)) {
        inline_graph(composed(*op, node), node);
      } else {
        graph_.nodes.push_back(node);
      }
    }
    graph_.remove_unused();
  }

 private:
  static bool is_elementwise(const TracedNode& node) {
    const Primitive& p = *node.primitive;
    return typeid(p) == typeid(Elementwise) || typeid(p) == typeid(AsType);
  }

  // Whether an elementwise operation over the same elements makes the first
  // input or reads the result.
  bool has_neighbour(const TracedNode& node) const {
    const TracedValue& in = graph_.values[node.inputs[0]];
    int out = node.outputs[0];
    Primitive& p = *node.primitive;
    const Backend& backend = get_backend(p.device().type);
    if (!suits_rows(graph_, in) || in.shape != graph_.values[out].shape ||
        backend.keeps_whole(p, in.shape)) {
      return false;
    }
    return (in.node >= 0 && elementwise_[in.node] != 0) ||
           std::any_of(users_[out].begin(), users_[out].end(), [&](int user) {
             return elementwise_[user] != 0;
           });
  }

  TracedGraph composed(const RowWise& op, const TracedNode& node) const {
    std::vector<array> inputs;
    for (int in : node.inputs) {
      const TracedValue& value = graph_.values[in];
      inputs.emplace_back(
          value.shape, value.dtype, nullptr, std::vector<array>{});
    }
    ArrayFn compose = [&](const std::vector<array>& given) {
      return std::vector<array>{op.compose(given)};
    };
    TracedGraph part = trace_function(compose, inputs, false);
    simplify(part);
    return part;
  }

  void inline_graph(const TracedGraph& part, const TracedNode& node) {
    std::vector<int> number(part.values.size(), -1);
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      number[part.inputs[i]] = node.inputs[i];
    }
    number[part.outputs[0]] = node.outputs[0];
    for (size_t v = 0; v < part.values.size(); ++v) {
      if (number[v] < 0) {
        number[v] = static_cast<int>(graph_.values.size());
        graph_.values.push_back(part.values[v]);
      }
    }
    for (TracedNode inner : part.nodes) {
      for (int& in : inner.inputs) {
        in = number[in];
      }
      for (int& out : inner.outputs) {
        out = number[out];
      }
      graph_.nodes.push_back(std::move(inner));
    }
  }

  TracedGraph& graph_;
  std::vector<std::vector<int>> users_;
  std::vector<char> elementwise_;
};

}  // namespace

void expand(TracedGraph& graph) {
  if (!graph.shapeless) {
    Expander(graph).run();
  }
}

}  // namespace mlx::core::detail
