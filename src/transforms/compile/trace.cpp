// Running a function on placeholders and writing down what it built.
#include <unordered_map>
#include <unordered_set>

#include "graph/claims.h"
#include "graph/tracing.h"
#include "transforms/compile/traced_graph.h"
#include "types/error.h"

namespace mlx::core::detail {

namespace {

// Walks from the outputs to the placeholders, depth first, so that values are
// used soon after they were made.
class Recorder {
 public:
  Recorder(TracedGraph& graph, uint32_t trace, const std::vector<array>& given)
      : graph_(graph), trace_(trace) {
    for (const array& a : given) {
      given_.insert(a.id());
    }
  }

  void add_input(const array& placeholder) {
    graph_.inputs.push_back(add_value(placeholder));
  }

  void add_output(const array& output) {
    visit(output);
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      if (top.next < top.node.inputs().size()) {
        array in = top.node.inputs()[top.next++];
        visit(in);
      } else {
        array node = std::move(top.node);
        stack_.pop_back();
        add_node(node);
      }
    }
    graph_.outputs.push_back(known_.at(output.id()));
  }

 private:
  struct Frame {
    array node;
    size_t next;
  };

  int add_value(const array& a) {
    int number = static_cast<int>(graph_.values.size());
    graph_.values.push_back({a.shape(), a.dtype(), std::nullopt, -1});
    known_.emplace(a.id(), number);
    return number;
  }

  void visit(const array& a) {
    if (known_.contains(a.id())) {
      return;
    }
    // What was made outside stays there and is computed once.
    bool inside = a.has_primitive() && a.status() == array::unscheduled &&
                  (a.is_tracer() || a.made_in() == trace_);
    if (inside) {
      stack_.push_back({a, 0});
      return;
    }
    if (!a.has_primitive() && a.status() == array::unscheduled) {
      invalid(
          "compile",
          "an array that the function uses has neither data nor an operation: ",
          a.shape(),
          " ",
          a.dtype(),
          ". It stems from another trace, or stands for an argument of an "
          "outer function. Pass it as an argument, or declare what holds it as "
          "captured input.");
    }
    check_constant(a);
    int number = add_value(a);
    graph_.values[number].constant = a;
  }

  // An argument that the function found by another way, or what was made of it
  // outside, would stay as it is now in later calls.
  void check_constant(const array& constant) {
    std::vector<array> waiting{constant};
    while (!waiting.empty()) {
      array a = std::move(waiting.back());
      waiting.pop_back();
      if (given_.contains(a.id())) {
        invalid(
            "compile",
            "the function uses an array that is also an argument, without "
            "taking it from its arguments: ",
            a.shape(),
            " ",
            a.dtype(),
            ". Use the argument inside, or declare what holds the array as "
            "captured input.");
      }
      if (a.status() == array::unscheduled && checked_.insert(a.id()).second) {
        waiting.insert(waiting.end(), a.inputs().begin(), a.inputs().end());
      }
    }
  }

  void add_node(const array& a) {
    if (known_.contains(a.id())) {
      return;  // met again below itself by way of a sibling
    }
    TracedNode node{a.primitive_ptr(), {}, {}, nullptr, nullptr};
    node.postponed = dynamic_cast<const Postponed*>(node.primitive.get());
    for (const array& in : a.inputs()) {
      node.inputs.push_back(known_.at(in.id()));
    }
    int index = static_cast<int>(graph_.nodes.size());
    for (const array& out : a.outputs()) {
      int number = add_value(out);
      graph_.values[number].node = index;
      node.outputs.push_back(number);
    }
    graph_.nodes.push_back(std::move(node));
  }

  TracedGraph& graph_;
  uint32_t trace_;
  std::unordered_set<std::uintptr_t> given_;
  /// Outside of the function: constants and what they are made of.
  std::unordered_set<std::uintptr_t> checked_;
  std::unordered_map<std::uintptr_t, int> known_;
  std::vector<Frame> stack_;
};

}  // namespace

TracedGraph trace_function(
    const ArrayFn& fun, const std::vector<array>& inputs, bool shapeless) {
  TracedGraph graph;
  graph.shapeless = shapeless;
  InTracing scope(shapeless ? Tracing::shapeless : Tracing::placeholders);
  std::vector<array> placeholders;
  placeholders.reserve(inputs.size());
  for (const array& in : inputs) {
    array placeholder(in.shape(), in.dtype(), nullptr, {});
    placeholder.set_tracer(true);
    placeholders.push_back(std::move(placeholder));
  }
  // Copies: the function may overwrite the handles it gets.
  std::vector<array> outputs = fun(placeholders);
  GraphLock lock;
  Recorder recorder(graph, current_trace(), inputs);
  for (const array& placeholder : placeholders) {
    recorder.add_input(placeholder);
  }
  for (const array& output : outputs) {
    recorder.add_output(output);
  }
  return graph;
}

}  // namespace mlx::core::detail
