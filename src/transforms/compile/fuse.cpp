// Making one node of each group that was found.
#include <algorithm>
#include <span>
#include <sstream>
#include <unordered_map>

#include "mlx/utils.h"
#include "ops/compiled.h"
#include "ops/elementwise_primitive.h"
#include "ops/reduce.h"
#include "transforms/compile/groups.h"

namespace mlx::core::detail {

namespace {

class Fuser {
 public:
  Fuser(TracedGraph& graph, const Grouping& found, bool report)
      : graph_(graph),
        found_(found),
        report_(report),
        done_(graph.nodes.size(), 0),
        number_(graph.values.size(), -1) {}

  // Nodes again behind what they read, groups as one.
  void run() {
    std::vector<TracedNode> nodes;
    std::vector<int> waiting;
    for (size_t start = 0; start < graph_.nodes.size(); ++start) {
      waiting.push_back(static_cast<int>(start));
      while (!waiting.empty()) {
        int n = waiting.back();
        if (done_[n] == 0 && add_producers(n, waiting)) {
          continue;
        }
        waiting.pop_back();
        if (done_[n] == 0) {
          nodes.push_back(new_node(n));
        }
      }
    }
    graph_.nodes = std::move(nodes);
    graph_.remove_unused();
  }

  /// A line for each part.
  std::string report() const { return parts_.str(); }

 private:
  std::span<const int> members(const int& n) const {
    int group = found_.group_of[n];
    if (group < 0) {
      return {&n, 1};
    }
    return found_.groups[group].nodes;
  }

  // Adds what has to come before the node and its group.
  bool add_producers(int n, std::vector<int>& waiting) const {
    size_t before = waiting.size();
    for (int member : members(n)) {
      for (int in : graph_.nodes[member].inputs) {
        int producer = graph_.values[in].node;
        if (producer >= 0 && done_[producer] == 0 &&
            !is_inside(producer, found_.group_of[n])) {
          waiting.push_back(producer);
        }
      }
    }
    return waiting.size() > before;
  }

  TracedNode new_node(int n) {
    for (int member : members(n)) {
      done_[member] = 1;
    }
    int group = found_.group_of[n];
    return group < 0 ? graph_.nodes[n] : fused_node(group);
  }

  bool is_inside(int node, int group) const {
    return group >= 0 && found_.group_of[node] == group;
  }

  TracedNode fused_node(int index) {
    const NodeGroup& group = found_.groups[index];
    FusedProgram program;
    TracedNode node;
    for (int member : group.nodes) {
      for (int in : graph_.nodes[member].inputs) {
        int producer = graph_.values[in].node;
        if (number_[in] < 0 && (producer < 0 || !is_inside(producer, index))) {
          number_[in] = program.num_inputs();
          node.inputs.push_back(in);
          const TracedValue& value = graph_.values[in];
          program.inputs.push_back(
              {value.dtype, input_extent(value, group.shape)});
        }
      }
    }
    for (int member : group.nodes) {
      int out = graph_.nodes[member].outputs[0];
      program.steps.push_back(step_of(member, program));
      number_[out] =
          program.num_inputs() + static_cast<int>(program.steps.size()) - 1;
      if (found_.leaves(out, index, index)) {
        program.outputs.push_back(number_[out]);
        node.outputs.push_back(out);
      }
    }
    if (graph_.shapeless) {
      node.unfused = unfused(node, group);
    }
    forget_numbers(node, group);
    node.primitive = primitive_of(
        graph_.nodes[group.nodes[0]].primitive->stream(),
        std::move(program),
        group.shape);
    note_part(node, group);
    return node;
  }

  // Equal parts over the same elements share one: it is planned once, and its
  // plan is at hand in the caches for the next (the step of an optimizer has
  // hundreds).
  std::shared_ptr<Primitive> primitive_of(
      Stream s, FusedProgram program, const Shape& shape) {
    size_t hash = program.inputs.size();
    for (const FusedStep& step : program.steps) {
      hash = hash * 31 + static_cast<size_t>(step.op);
    }
    for (ShapeElem n : shape) {
      hash = hash * 31 + static_cast<size_t>(n);
    }
    auto [first, last] = made_.equal_range(hash);
    for (; first != last; ++first) {
      const Made& one = first->second;
      if (one.shape == shape && one.primitive->stream() == s &&
          one.primitive->program() == program) {
        return one.primitive;
      }
    }
    auto primitive = std::make_shared<Compiled>(s, std::move(program));
    made_.emplace(hash, Made{primitive, shape});
    return primitive;
  }

  Extent input_extent(const TracedValue& value, const Shape& whole) const {
    if (value.shape.empty() || (!graph_.shapeless && value.size() == 1)) {
      return Extent::one;
    }
    bool for_rows =
        !graph_.shapeless && value.shape.back() == 1 && whole.back() > 1;
    return for_rows ? Extent::row : Extent::element;
  }

  FusedStep step_of(int member, const FusedProgram& program) const {
    const TracedNode& node = graph_.nodes[member];
    FusedStep step;
    step.dtype = graph_.values[node.outputs[0]].dtype;
    step.arity = static_cast<uint8_t>(node.inputs.size());
    step.extent = Extent::one;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      step.operands[k] = number_[node.inputs[k]];
      step.extent = std::max(step.extent, program.extent(step.operands[k]));
    }
    switch (found_.kinds[member]) {
      case NodeKind::elementwise:
        step.kind = FusedStep::Kind::elementwise;
        step.op = static_cast<const Elementwise&>(*node.primitive).op();
        break;
      case NodeKind::cast:
        step.kind = FusedStep::Kind::cast;
        break;
      default:
        step.kind = FusedStep::Kind::reduce;
        step.reduce = static_cast<const Reduce&>(*node.primitive).params().type;
        step.extent = Extent::row;
    }
    return step;
  }

  // The part as it was, for shapes that the fused one does not suit. It holds
  // its own values only, numbered as those of the program.
  std::shared_ptr<const TracedGraph> unfused(
      const TracedNode& node, const NodeGroup& group) const {
    auto part = std::make_shared<TracedGraph>();
    part->shapeless = true;
    auto add_value = [&](int value) {
      const TracedValue& old = graph_.values[value];
      part->values.push_back({old.shape, old.dtype, std::nullopt, -1});
      return number_[value];
    };
    for (int in : node.inputs) {
      part->inputs.push_back(add_value(in));
    }
    for (int member : group.nodes) {
      TracedNode inner = graph_.nodes[member];
      for (int& in : inner.inputs) {
        in = number_[in];
      }
      inner.outputs[0] = add_value(inner.outputs[0]);
      part->nodes.push_back(std::move(inner));
    }
    for (int out : node.outputs) {
      part->outputs.push_back(number_[out]);
    }
    return part;
  }

  void forget_numbers(const TracedNode& node, const NodeGroup& group) {
    for (int in : node.inputs) {
      number_[in] = -1;
    }
    for (int member : group.nodes) {
      number_[graph_.nodes[member].outputs[0]] = -1;
    }
  }

  void note_part(const TracedNode& node, const NodeGroup& group) {
    if (report_) {
      parts_ << "  " << node.primitive->name() << " over " << group.shape
             << ": " << node.inputs.size() << " inputs, " << group.nodes.size()
             << " operations, " << node.outputs.size() << " outputs\n";
    }
  }

  struct Made {
    std::shared_ptr<Compiled> primitive;
    Shape shape;
  };

  TracedGraph& graph_;
  const Grouping& found_;
  bool report_;
  std::ostringstream parts_;
  std::vector<char> done_;
  /// By value of the graph, its number in the program that is being made.
  std::vector<int> number_;
  std::unordered_multimap<size_t, Made> made_;
};

}  // namespace

void fuse(TracedGraph& graph, std::string* report) {
  std::string boundaries;
  Grouping found = find_groups(graph, report ? &boundaries : nullptr);
  Fuser fuser(graph, found, report != nullptr);
  fuser.run();
  if (report) {
    *report = fuser.report() + boundaries;
  }
}

}  // namespace mlx::core::detail
