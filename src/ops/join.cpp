// Derivatives, batch rules and shapes of joining, splitting and constants.
#include "ops/join.h"

#include <algorithm>

#include "mlx/ops.h"
#include "ops/rules.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

// ---- Concatenate

std::vector<Shape> Concatenate::output_shapes(
    const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  int axis = params().axis;
  int64_t length = 0;
  for (const array& in : inputs) {
    length += in.shape(axis);
  }
  shape[axis] = safe_cast(length, "concatenate");
  return {shape};
}

std::vector<array> Concatenate::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  return {concatenate(
      filled_tangents(primals, tangents, argnums, stream()),
      params().axis,
      stream())};
}

std::vector<array> Concatenate::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  std::vector<array> grads;
  for (int argnum : argnums) {
    Shape start(cotangents[0].ndim(), 0);
    Shape stop = cotangents[0].shape();
    for (int i = 0; i < argnum; ++i) {
      start[params().axis] += primals[i].shape(params().axis);
    }
    stop[params().axis] =
        start[params().axis] + primals[argnum].shape(params().axis);
    grads.push_back(slice(cotangents[0], start, stop, stream()));
  }
  return grads;
}

Batched Concatenate::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  return {
      {concatenate(
          all_batched(inputs, axes, stream()), params().axis + 1, stream())},
      {0}};
}

// ---- Split

std::vector<Shape> Split::output_shapes(const std::vector<array>& inputs) {
  std::vector<Shape> shapes;
  const auto& [indices, axis] = params();
  shapes.reserve(indices.size() + 1);
  for (size_t i = 0; i <= indices.size(); ++i) {
    int begin = i ? indices[i - 1] : 0;
    int end = i < indices.size() ? indices[i] : inputs[0].shape(axis);
    shapes.push_back(inputs[0].shape());
    shapes.back()[axis] = std::max(end - begin, 0);
  }
  return shapes;
}

std::vector<array> Split::jvp(
    const std::vector<array>&,
    const std::vector<array>& tangents,
    const std::vector<int>&) {
  return split(tangents[0], params().indices, params().axis, stream());
}

std::vector<array> Split::vjp(
    const std::vector<array>&,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {concatenate(cotangents, params().axis, stream())};
}

Batched Split::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  std::vector<array> parts =
      split(x, params().indices, params().axis + 1, stream());
  return {parts, std::vector<int>(parts.size(), 0)};
}

// ---- Pad

std::vector<Shape> Pad::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] = safe_cast(
        int64_t{shape[i]} + params().low[i] + params().high[i], "pad");
  }
  return {shape};
}

std::vector<array> Pad::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  std::vector<array> all =
      filled_tangents(primals, tangents, argnums, stream());
  return {array(
      output_shapes(all)[0],
      all[0].dtype(),
      std::make_shared<Pad>(stream(), params()),
      all)};
}

std::vector<array> Pad::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  Shape stop = primals[0].shape();
  for (size_t i = 0; i < stop.size(); ++i) {
    stop[i] += params().low[i];
  }
  array inner = slice(cotangents[0], params().low, stop, stream());
  std::vector<array> grads;
  for (int argnum : argnums) {
    grads.push_back(
        argnum == 0 ? inner
                    : subtract(
                          sum(cotangents[0], stream()),
                          sum(inner, stream()),
                          stream()));
  }
  return grads;
}

Batched Pad::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  if (axes[1] >= 0) {
    invalid(
        "pad",
        "vmap over the border value. Expected one value for all entries; "
        "mlx.core.where chooses between several.");
  }
  array x = batch_to_front(inputs[0], axes[0], stream());
  PadParams batched = params();
  batched.low.insert(batched.low.begin(), 0);
  batched.high.insert(batched.high.begin(), 0);
  auto op = std::make_shared<Pad>(stream(), batched);
  return {
      {array(
          op->output_shapes({x, inputs[1]})[0], x.dtype(), op, {x, inputs[1]})},
      {0}};
}

// ---- Full

std::vector<Shape> Full::output_shapes(const std::vector<array>&) {
  return {params().shape};
}

std::vector<array> Full::jvp(
    const std::vector<array>&,
    const std::vector<array>& tangents,
    const std::vector<int>&) {
  return {full(params().shape, tangents[0], stream())};
}

std::vector<array> Full::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {sum_to_shape(cotangents[0], primals[0].shape(), stream())};
}

Batched Full::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  int ndim = static_cast<int>(params().shape.size());
  array x = batch_to_front(inputs[0], axes[0], ndim, stream());
  return {{full(with_batch(params().shape, x.shape(0)), x, stream())}, {0}};
}

// ---- Arange, NumberOfElements: no dependence on values

std::vector<Shape> Arange::output_shapes(const std::vector<array>&) {
  return {{params().count}};
}

std::vector<array> Arange::jvp(
    const std::vector<array>&,
    const std::vector<array>&,
    const std::vector<int>&) {
  return {};
}

std::vector<array> Arange::vjp(
    const std::vector<array>&,
    const std::vector<array>&,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {};
}

Batched Arange::vmap(const std::vector<array>&, const std::vector<int>&) {
  return {};
}

std::vector<Shape> NumberOfElements::output_shapes(const std::vector<array>&) {
  return {Shape{}};
}

std::vector<array> NumberOfElements::jvp(
    const std::vector<array>&,
    const std::vector<array>&,
    const std::vector<int>&) {
  return {zeros({}, params().dtype, stream())};
}

std::vector<array> NumberOfElements::vjp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {zeros_like(primals[0], stream())};
}

Batched NumberOfElements::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<int> shifted = params().axes;
  for (int& axis : shifted) {
    axis += axis >= axes[0];
  }
  return {
      {number_of_elements(
          inputs[0], shifted, params().inverted, params().dtype, stream())},
      {-1}};
}

// ---- Depends

std::vector<Shape> Depends::output_shapes(const std::vector<array>& inputs) {
  std::vector<Shape> shapes;
  for (int i = 0; i < params().count; ++i) {
    shapes.push_back(inputs[i].shape());
  }
  return shapes;
}

std::vector<array> Depends::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  std::vector<array> all =
      filled_tangents(primals, tangents, argnums, stream());
  all.resize(params().count, all[0]);
  return all;
}

std::vector<array> Depends::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  std::vector<array> grads;
  for (int argnum : argnums) {
    grads.push_back(
        argnum < params().count ? cotangents[argnum]
                                : zeros_like(primals[argnum], stream()));
  }
  return grads;
}

Batched Depends::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<array> first(inputs.begin(), inputs.begin() + params().count);
  std::vector<array> rest(inputs.begin() + params().count, inputs.end());
  return {
      depends(first, rest),
      std::vector<int>(axes.begin(), axes.begin() + params().count)};
}

}  // namespace mlx::core
