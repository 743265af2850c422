// What passes ask of a traced graph, and building arrays from it.
#include "transforms/compile/traced_graph.h"

#include "ops/compiled.h"
#include "types/error.h"

namespace mlx::core::detail {

namespace {

bool suits(const TracedNode& node, const std::vector<array>& inputs) {
  return static_cast<const Compiled&>(*node.primitive).suits(inputs);
}

}  // namespace

int64_t TracedValue::size() const {
  int64_t size = 1;
  for (ShapeElem n : shape) {
    size *= n;
  }
  return size;
}

bool TracedGraph::is_number(int value) const {
  const TracedValue& v = values[value];
  return v.constant && v.shape.empty() &&
         v.constant->status() == array::available;
}

std::vector<std::vector<int>> TracedGraph::users() const {
  std::vector<std::vector<int>> users(values.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (int in : nodes[n].inputs) {
      // Once for each node, also where it reads the value twice.
      if (users[in].empty() || users[in].back() != static_cast<int>(n)) {
        users[in].push_back(static_cast<int>(n));
      }
    }
  }
  return users;
}

std::vector<char> TracedGraph::output_marks() const {
  std::vector<char> marks(values.size(), 0);
  for (int out : outputs) {
    marks[out] = 1;
  }
  return marks;
}

void TracedGraph::remove_unused() {
  std::vector<char> used = output_marks();
  std::vector<TracedNode> kept;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    bool needed = false;
    for (int out : node->outputs) {
      needed = needed || (used[out] != 0 && !is_constant(out));
    }
    if (needed) {
      for (int in : node->inputs) {
        used[in] = 1;
      }
      kept.push_back(std::move(*node));
    }
  }
  nodes.assign(
      std::make_move_iterator(kept.rbegin()),
      std::make_move_iterator(kept.rend()));
  for (TracedValue& value : values) {
    value.node = -1;
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (int out : nodes[n].outputs) {
      values[out].node = static_cast<int>(n);
    }
  }
  for (size_t v = 0; v < values.size(); ++v) {
    if (used[v] == 0) {
      values[v].constant.reset();
    }
  }
}

std::vector<array> TracedGraph::replay(const std::vector<array>& given) const {
  if (given.size() != inputs.size()) {
    invalid(
        "compile",
        given.size(),
        " inputs of a function traced with ",
        inputs.size(),
        ".");
  }
  // Lengths are certain here, also while another function is traced.
  std::optional<InTracing> certain;
  if (shapeless && in_shapeless_tracing()) {
    certain.emplace(Tracing::certain_shapes);
  }
  std::vector<std::optional<array>> made(values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    made[inputs[i]] = given[i];
  }
  auto value = [&](int v) -> const array& {
    return values[v].constant ? *values[v].constant : *made[v];
  };
  for (const TracedNode& node : nodes) {
    std::vector<array> read;
    read.reserve(node.inputs.size());
    for (int in : node.inputs) {
      read.push_back(value(in));
    }
    if (node.postponed || (node.unfused && !suits(node, read))) {
      std::vector<array> outs = node.postponed ? node.postponed->build(read)
                                               : node.unfused->replay(read);
      for (size_t i = 0; i < outs.size(); ++i) {
        made[node.outputs[i]] = std::move(outs[i]);
      }
      continue;
    }
    std::vector<Shape> shapes;
    if (shapeless) {
      shapes = node.primitive->output_shapes(read);
    }
    if (node.outputs.size() == 1) {
      const TracedValue& out = values[node.outputs[0]];
      made[node.outputs[0]].emplace(
          shapeless ? std::move(shapes[0]) : out.shape,
          out.dtype,
          node.primitive,
          std::move(read));
      continue;
    }
    std::vector<Dtype> dtypes;
    for (int out : node.outputs) {
      dtypes.push_back(values[out].dtype);
      if (!shapeless) {
        shapes.push_back(values[out].shape);
      }
    }
    std::vector<array> outs =
        array::make_arrays(std::move(shapes), dtypes, node.primitive, read);
    for (size_t i = 0; i < outs.size(); ++i) {
      made[node.outputs[i]] = std::move(outs[i]);
    }
  }
  std::vector<array> results;
  results.reserve(outputs.size());
  for (int out : outputs) {
    results.push_back(value(out));
  }
  return results;
}

}  // namespace mlx::core::detail
