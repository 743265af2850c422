// Batching: trace once without the batch axis, then let each node's batch
// rule make the node for the whole batch.
#include "transforms/vmap.h"

#include <algorithm>
#include <unordered_map>

#include "graph/postponed.h"
#include "graph/tracing.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "transforms/node_rules.h"
#include "transforms/trace.h"
#include "types/error.h"

namespace mlx::core {

namespace detail {

namespace {

struct Batched {
  array value;
  int axis;
};

using BatchedMap = std::unordered_map<std::uintptr_t, Batched>;

// The same node again, on what its placeholders stand for.
std::vector<array> rebuild(
    const array& node, const std::vector<array>& inputs) {
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  for (const array& out : node.outputs()) {
    shapes.push_back(out.shape());
    dtypes.push_back(out.dtype());
  }
  return array::make_arrays(
      std::move(shapes), dtypes, node.primitive_ptr(), inputs);
}

void batch_node(const array& node, BatchedMap& known) {
  std::vector<array> inputs;
  std::vector<int> axes;
  bool mapped = false;
  for (const array& in : node.inputs()) {
    auto it = known.find(in.id());
    inputs.push_back(it == known.end() ? in : it->second.value);
    axes.push_back(it == known.end() ? -1 : it->second.axis);
    mapped = mapped || axes.back() >= 0;
  }
  std::vector<array> outputs = node.outputs();
  std::vector<array> values;
  std::vector<int> value_axes(outputs.size(), -1);
  if (mapped) {
    std::tie(values, value_axes) = node_vmap(node, inputs, axes);
  } else {
    values = rebuild(node, inputs);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    known.insert_or_assign(outputs[i].id(), Batched{values[i], value_axes[i]});
  }
}

ShapeElem batch_size(
    const std::vector<array>& inputs, const std::vector<int>& in_axes) {
  ShapeElem size = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (in_axes[i] < 0) {
      continue;
    }
    if (in_axes[i] >= static_cast<int>(inputs[i].ndim())) {
      throw AxisError(message(
          "vmap",
          "axis out of range: ",
          in_axes[i],
          " for an input of ",
          inputs[i].ndim(),
          " dimensions."));
    }
    ShapeElem n = inputs[i].shape(in_axes[i]);
    if (size >= 0 && n != size) {
      invalid(
          "vmap",
          "mapped axes differ in length: ",
          size,
          " and ",
          n,
          ". Expected equal ones.");
    }
    size = n;
  }
  if (size < 0) {
    invalid("vmap", "no input is mapped. Expected an axis for at least one.");
  }
  return size;
}

// `value` as many times as the batch of `mapped` is long.
array repeated(
    const array& value,
    int axis,
    const array& mapped,
    int mapped_axis,
    Stream s) {
  MLX_POSTPONE(
      "vmap", repeated(in[0], axis, in[1], mapped_axis, s), value, mapped);
  return repeat(
      expand_dims(value, axis, s), mapped.shape(mapped_axis), axis, s);
}

// `value` with its batch axis at `out_axis`; `mapped` is an input with a batch.
array placed(
    array value, int axis, int out_axis, const array& mapped, int mapped_axis) {
  if (out_axis < 0) {
    if (axis >= 0) {
      invalid(
          "vmap",
          "an output depends on the batch but has no out axis. "
          "Expected one.");
    }
    return value;
  }
  if (axis < 0) {
    return repeated(value, out_axis, mapped, mapped_axis, to_stream({}));
  }
  return axis == out_axis ? value : moveaxis(value, axis, out_axis);
}

}  // namespace

std::pair<std::vector<array>, std::vector<array>> vmap_trace(
    const ArrayFn& fun,
    const std::vector<array>& inputs,
    const std::vector<int>& in_axes) {
  if (in_axes.size() != inputs.size()) {
    invalid(
        "vmap",
        in_axes.size(),
        " axes for ",
        inputs.size(),
        " inputs. Expected one for each.");
  }
  batch_size(inputs, in_axes);
  InTracing scope(Tracing::placeholders);
  std::vector<array> placeholders;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape shape = inputs[i].shape();
    if (in_axes[i] >= 0) {
      shape.erase(shape.begin() + in_axes[i]);
    }
    array placeholder(std::move(shape), inputs[i].dtype(), nullptr, {});
    placeholder.set_tracer(true);
    placeholders.push_back(std::move(placeholder));
  }
  std::vector<array> outputs = fun(placeholders);
  return {std::move(placeholders), std::move(outputs)};
}

std::vector<array> vmap_replace(
    const std::vector<array>& inputs,
    const std::vector<array>& placeholders,
    const std::vector<array>& outputs,
    const std::vector<int>& in_axes,
    const std::vector<int>& out_axes) {
  if (out_axes.size() != outputs.size()) {
    invalid(
        "vmap",
        out_axes.size(),
        " axes for ",
        outputs.size(),
        " outputs. Expected one for each.");
  }
  batch_size(inputs, in_axes);
  size_t mapped =
      std::find_if(
          in_axes.begin(), in_axes.end(), [](int axis) { return axis >= 0; }) -
      in_axes.begin();
  Trace trace;
  if (!placeholders.empty()) {
    InTracing scope(Tracing::placeholders, placeholders[0].trace());
    trace = make_trace(placeholders, outputs, true);
  }
  BatchedMap known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    known.emplace(placeholders[i].id(), Batched{inputs[i], in_axes[i]});
  }
  for (const array& node : trace.tape) {
    batch_node(node, known);
  }
  std::vector<array> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto it = known.find(outputs[i].id());
    bool found = it != known.end();
    results.push_back(placed(
        found ? it->second.value : outputs[i],
        found ? it->second.axis : -1,
        out_axes[i],
        inputs[mapped],
        in_axes[mapped]));
  }
  return results;
}

}  // namespace detail

ArrayFn vmap(
    const ArrayFn& fun,
    const std::vector<int>& in_axes,
    const std::vector<int>& out_axes) {
  return [fun, in_axes, out_axes](const std::vector<array>& inputs) {
    std::vector<int> in = in_axes;
    if (in.empty()) {
      in.resize(inputs.size(), 0);
    }
    auto [placeholders, outputs] = detail::vmap_trace(fun, inputs, in);
    std::vector<int> out = out_axes;
    if (out.empty()) {
      out.resize(outputs.size(), 0);
    }
    return detail::vmap_replace(inputs, placeholders, outputs, in, out);
  };
}

std::function<array(const array&)> vmap(
    const std::function<array(const array&)>& fun, int in_axis, int out_axis) {
  ArrayFn wrapped = [fun](const std::vector<array>& in) {
    return std::vector<array>{fun(in[0])};
  };
  ArrayFn mapped =
      vmap(wrapped, std::vector<int>{in_axis}, std::vector<int>{out_axis});
  return [mapped](const array& a) { return mapped({a})[0]; };
}

std::function<array(const array&, const array&)> vmap(
    const std::function<array(const array&, const array&)>& fun,
    int in_axis_a,
    int in_axis_b,
    int out_axis) {
  ArrayFn wrapped = [fun](const std::vector<array>& in) {
    return std::vector<array>{fun(in[0], in[1])};
  };
  ArrayFn mapped = vmap(
      wrapped,
      std::vector<int>{in_axis_a, in_axis_b},
      std::vector<int>{out_axis});
  return [mapped](const array& a, const array& b) { return mapped({a, b})[0]; };
}

}  // namespace mlx::core
