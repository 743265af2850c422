// Functions and rules of reading at positions.
#include "ops/gather.h"

#include <algorithm>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/slice_update.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

array gather_node(
    const array& a,
    const std::vector<array>& indices,
    GatherParams params,
    Stream s) {
  Shape shape = index_shape(indices);
  shape.insert(
      shape.end(), params.slice_sizes.begin(), params.slice_sizes.end());
  std::vector<array> inputs = {a};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return make_node<Gather>(
      std::move(shape), a.dtype(), std::move(inputs), s, std::move(params));
}

std::vector<array> with_indices(
    const array& a, const std::vector<array>& indices) {
  std::vector<array> all = {a};
  all.insert(all.end(), indices.begin(), indices.end());
  return all;
}

std::vector<array> index_inputs(const std::vector<array>& inputs) {
  return {inputs.begin() + 1, inputs.end()};
}

// The sub-arrays along `axis`, with the indices' axes in the axis' place.
array take_axis(const array& a, const array& indices, int axis, Stream s) {
  if (axis == 0) {
    Shape sizes = a.shape();
    sizes[0] = 1;
    array out = gather(a, {indices}, {0}, sizes, s);
    return squeeze(out, static_cast<int>(indices.ndim()), s);
  }
  // Along an inner axis: equal indices for all outer positions, which keeps
  // the result row-major.
  Shape flat(a.ndim(), 1);
  flat[axis] = static_cast<ShapeElem>(indices.size());
  array out = take_along_axis(a, reshape(indices, flat, s), axis, s);
  Shape shape(a.shape().begin(), a.shape().begin() + axis);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), a.shape().begin() + axis + 1, a.shape().end());
  return reshape(out, shape, s);
}

}  // namespace

array gather(
    const array& a,
    const std::vector<array>& indices,
    const std::vector<int>& axes,
    const Shape& slice_sizes,
    StreamOrDevice s) {
  if (detail::in_shapeless_tracing()) {
    std::vector<array> all = with_indices(a, indices);
    if (detail::lengths_open(all)) {
      return detail::postpone(
          "gather",
          all,
          to_stream(s),
          [=, s = to_stream(s)](const std::vector<array>& in) {
            return std::vector<array>{
                gather(in[0], index_inputs(in), axes, slice_sizes, s)};
          })[0];
    }
  }
  std::vector<int> along = index_axes("gather", a, indices, axes);
  // From an empty array nothing can be read, at no positions.
  Shape shape = index_shape(indices);
  bool nowhere = is_empty(shape);
  bool fits = slice_sizes.size() == a.ndim();
  for (size_t i = 0; fits && i < a.ndim(); ++i) {
    fits = slice_sizes[i] >= 0 && (nowhere || slice_sizes[i] <= a.shape()[i]);
  }
  if (!fits) {
    invalid(
        "gather",
        "slices of size ",
        slice_sizes,
        " do not fit in an array of shape ",
        a.shape(),
        ".");
  }
  if (nowhere) {
    shape.insert(shape.end(), slice_sizes.begin(), slice_sizes.end());
    return zeros(shape, a.dtype(), s);
  }
  return gather_node(a, indices, {std::move(along), slice_sizes}, to_stream(s));
}

array take(const array& a, const array& indices, int axis, StreamOrDevice s) {
  MLX_POSTPONE("take", take(in[0], in[1], axis, s), a, indices);
  check_index_type("take", indices);
  axis = checked_axis("take", axis, static_cast<int>(a.ndim()));
  if (a.shape(axis) == 0 && indices.size() != 0) {
    invalid(
        "take",
        "nothing to take from: axis ",
        axis,
        " of ",
        a.shape(),
        " is empty.");
  }
  if (indices.size() == 0) {
    Shape shape(a.shape().begin(), a.shape().begin() + axis);
    shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
    shape.insert(shape.end(), a.shape().begin() + axis + 1, a.shape().end());
    return zeros(shape, a.dtype(), s);
  }
  return take_axis(a, indices, axis, to_stream(s));
}

array take(const array& a, const array& indices, StreamOrDevice s) {
  return take(flatten(a, s), indices, 0, s);
}

array take(const array& a, int index, int axis, StreamOrDevice s) {
  MLX_POSTPONE("take", take(in[0], index, axis, s), a);
  axis = checked_axis("take", axis, static_cast<int>(a.ndim()));
  ShapeElem length = a.shape(axis);
  if (index < -length || index >= length) {
    throw std::out_of_range(message(
        "take",
        "index out of range: ",
        index,
        " for axis ",
        axis,
        " of length ",
        length,
        ". Expected -length <= index < length."));
  }
  SliceParams slice{Shape(a.ndim(), 0), a.shape(), Shape(a.ndim(), 1)};
  slice.start[axis] = index < 0 ? index + length : index;
  slice.stop[axis] = slice.start[axis] + 1;
  return take_slice(a, slice, {axis}, to_stream(s));
}

array take(const array& a, int index, StreamOrDevice s) {
  return take(flatten(a, s), index, 0, s);
}

std::vector<array> broadcast_beside_axis(
    const char* op, const std::vector<array>& arrays, int axis, Stream s) {
  Shape common;
  for (const array& a : arrays) {
    if (a.ndim() != arrays[0].ndim()) {
      invalid(
          op,
          "arrays differ in rank: ",
          arrays[0].shape(),
          " and ",
          a.shape(),
          ". Expected equal numbers of axes.");
    }
    Shape shape = a.shape();
    shape[axis] = 1;
    common = broadcast_shapes(common, shape);
  }
  std::vector<array> out;
  for (const array& a : arrays) {
    common[axis] = a.shape(axis);
    out.push_back(broadcast_to(a, common, s));
  }
  return out;
}

array take_along_axis(
    const array& a, const array& indices, int axis, StreamOrDevice s) {
  MLX_POSTPONE(
      "take_along_axis", take_along_axis(in[0], in[1], axis, s), a, indices);
  Stream stream = to_stream(s);
  array at = indices_along_axis("take_along_axis", indices, stream);
  axis = checked_axis("take_along_axis", axis, static_cast<int>(a.ndim()));
  std::vector<array> in =
      broadcast_beside_axis("take_along_axis", {a, at}, axis, stream);
  if (a.shape(axis) == 0 && in[1].size() != 0) {
    invalid(
        "take_along_axis",
        "nothing to take from: axis ",
        axis,
        " of ",
        a.shape(),
        " is empty.");
  }
  Shape shape = in[1].shape();
  return make_node<GatherAxis>(
      std::move(shape), a.dtype(), std::move(in), stream, AxisParams{axis});
}

// ---- Gather

std::vector<Shape> Gather::output_shapes(const std::vector<array>& inputs) {
  Shape shape = index_shape(index_inputs(inputs));
  const Shape& sizes = params().slice_sizes;
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return {shape};
}

std::vector<array> Gather::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  check_not_indices("gather", argnums, 1, static_cast<int>(primals.size()) - 1);
  return {gather_node(tangents[0], index_inputs(primals), params(), stream())};
}

std::vector<array> Gather::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  check_not_indices("gather", argnums, 1, static_cast<int>(primals.size()) - 1);
  const array& c = cotangents[0];
  return {scatter_add(
      zeros(primals[0].shape(), c.dtype(), stream()),
      index_inputs(primals),
      c,
      params().axes,
      stream())};
}

Batched Gather::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  bool has_batch = axes[0] >= 0;
  array a = batch_to_front(inputs[0], axes[0], s);
  int index_ndim = 0;
  bool indices_have_batch = false;
  for (size_t i = 1; i < inputs.size(); ++i) {
    bool batched = axes[i] >= 0;
    indices_have_batch = indices_have_batch || batched;
    index_ndim =
        std::max(index_ndim, static_cast<int>(inputs[i].ndim()) - batched);
  }
  std::vector<array> indices;
  for (size_t i = 1; i < inputs.size(); ++i) {
    indices.push_back(batch_to_front(inputs[i], axes[i], index_ndim, s));
  }
  GatherParams batched = params();
  if (!has_batch) {
    return {{gather_node(a, indices, batched, s)}, {0}};
  }
  batched.axes = shifted(batched.axes);
  if (!indices_have_batch) {
    batched.slice_sizes = with_batch(batched.slice_sizes, a.shape(0));
    return {{gather_node(a, indices, batched, s)}, {index_ndim}};
  }
  indices.push_back(batch_positions(a.shape(0), index_ndim, s));
  batched.axes.push_back(0);
  batched.slice_sizes = with_batch(batched.slice_sizes, 1);
  array out = gather_node(a, indices, batched, s);
  return {{squeeze(out, index_ndim + 1, s)}, {0}};
}

// ---- GatherAxis

std::vector<Shape> GatherAxis::output_shapes(const std::vector<array>& inputs) {
  return {inputs[1].shape()};
}

std::vector<array> GatherAxis::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  check_not_indices("take_along_axis", argnums, 1, 1);
  return {take_along_axis(tangents[0], primals[1], params().axis, stream())};
}

std::vector<array> GatherAxis::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  check_not_indices("take_along_axis", argnums, 1, 1);
  const array& c = cotangents[0];
  return {scatter_add_axis(
      zeros(primals[0].shape(), c.dtype(), stream()),
      primals[1],
      c,
      params().axis,
      stream())};
}

Batched GatherAxis::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<array> in = all_batched(inputs, axes, stream());
  return {{take_along_axis(in[0], in[1], params().axis + 1, stream())}, {0}};
}

}  // namespace mlx::core
