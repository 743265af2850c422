// Functions and rules of slices at positions that an array gives.
#include <algorithm>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/slice_update.h"
#include "types/error.h"

namespace mlx::core {

namespace {

std::vector<int> checked_start(
    const char* op,
    const array& a,
    const array& start,
    const std::vector<int>& axes) {
  check_index_type(op, start);
  if (start.ndim() > 1 || start.size() != axes.size()) {
    invalid(
        op,
        "start of shape ",
        start.shape(),
        " for ",
        axes.size(),
        " axes. Expected one entry an axis.");
  }
  std::vector<int> found;
  for (int axis : axes) {
    found.push_back(checked_axis(op, axis, static_cast<int>(a.ndim())));
    if (std::count(found.begin(), found.end(), found.back()) > 1) {
      invalid(op, "an axis is named twice: ", axes, ".");
    }
  }
  return found;
}

array dynamic_slice(
    const array& a, const array& start, DynamicSliceParams params, Stream s) {
  Shape shape = params.slice_size;
  return make_node<DynamicSlice>(
      std::move(shape), a.dtype(), {a, start}, s, std::move(params));
}

array dynamic_slice_update(
    const array& src,
    const array& update,
    const array& start,
    std::vector<int> axes,
    Stream s) {
  return make_node<DynamicSliceUpdate>(
      src.shape(),
      src.dtype(),
      {src, update, start},
      s,
      AxesParams{std::move(axes)});
}

// The batch's starts along axis number `entry`, of shape (batch).
array start_entry(const array& starts, size_t entry, Stream s) {
  ShapeElem batch = starts.shape(0);
  if (starts.ndim() == 1) {
    return starts;
  }
  ShapeElem at = static_cast<ShapeElem>(entry);
  return reshape(
      slice(starts, Shape{0, at}, Shape{batch, at + 1}, s), {batch}, s);
}

// Starts as the kernels clamp them.
array clamped_start(const array& start, ShapeElem length, int last, Stream s) {
  array at = astype(start, int64, s);
  array zero(0, int64);
  array wrapped =
      where(less(at, zero, s), add(at, array(length, int64), s), at, s);
  return minimum(maximum(wrapped, zero, s), array(last, int64), s);
}

}  // namespace

array slice(
    const array& a,
    const array& start,
    std::vector<int> axes,
    Shape slice_size,
    StreamOrDevice s) {
  MLX_POSTPONE("slice", slice(in[0], in[1], axes, slice_size, s), a, start);
  axes = checked_start("slice", a, start, axes);
  bool fits = slice_size.size() == a.ndim();
  for (size_t i = 0; fits && i < slice_size.size(); ++i) {
    fits = slice_size[i] >= 0 && slice_size[i] <= a.shape()[i];
  }
  if (!fits) {
    invalid(
        "slice",
        "a slice of size ",
        slice_size,
        " does not fit in an array of shape ",
        a.shape(),
        ".");
  }
  return dynamic_slice(
      a, start, {std::move(axes), std::move(slice_size)}, to_stream(s));
}

array slice_update(
    const array& src,
    const array& update,
    const array& start,
    std::vector<int> axes,
    StreamOrDevice s) {
  MLX_POSTPONE(
      "slice_update",
      slice_update(in[0], in[1], in[2], axes, s),
      src,
      update,
      start);
  const char* op = "slice_update";
  axes = checked_start(op, src, start, axes);
  Shape shape = update.shape();
  bool fits = shape.size() <= src.ndim();
  if (fits) {
    shape.insert(shape.begin(), src.ndim() - shape.size(), 1);
  }
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    bool is_placed =
        std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end();
    // Axes that start says nothing about are filled where they can be.
    bool given = i + update.ndim() >= src.ndim();
    if (!is_placed && !given) {
      shape[i] = src.shape()[i];
    }
    fits = shape[i] <= src.shape()[i];
  }
  if (!fits) {
    invalid(
        op,
        "an update of shape ",
        update.shape(),
        " does not fit in an array of shape ",
        src.shape(),
        ".");
  }
  Stream stream = to_stream(s);
  array values =
      broadcast_to(astype(update, src.dtype(), stream), shape, stream);
  return dynamic_slice_update(src, values, start, std::move(axes), stream);
}

// ---- DynamicSlice

std::vector<Shape> DynamicSlice::output_shapes(const std::vector<array>&) {
  return {params().slice_size};
}

std::vector<array> DynamicSlice::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  check_not_indices("slice", argnums, 1, 1);
  return {dynamic_slice(tangents[0], primals[1], params(), stream())};
}

std::vector<array> DynamicSlice::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  check_not_indices("slice", argnums, 1, 1);
  const array& c = cotangents[0];
  array blank = zeros(primals[0].shape(), c.dtype(), stream());
  return {dynamic_slice_update(blank, c, primals[1], params().axes, stream())};
}

Batched DynamicSlice::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  bool has_batch = axes[0] >= 0;
  array a = batch_to_front(inputs[0], axes[0], s);
  DynamicSliceParams batched = params();
  if (has_batch) {
    batched.axes = shifted(batched.axes);
  }
  if (axes[1] < 0) {
    batched.slice_size = with_batch(batched.slice_size, a.shape(0));
    return {{dynamic_slice(a, inputs[1], batched, s)}, {0}};
  }
  // A start for each entry: gather clamps as the slice does.
  array starts = batch_to_front(inputs[1], axes[1], s);
  ShapeElem batch = starts.shape(0);
  std::vector<array> indices;
  for (size_t i = 0; i < batched.axes.size(); ++i) {
    indices.push_back(start_entry(starts, i, s));
  }
  if (!has_batch) {
    if (indices.empty()) {
      const Shape& size = params().slice_size;
      a = slice(a, Shape(size.size(), 0), size, s);
      return {{broadcast_to(a, with_batch(size, batch), s)}, {0}};
    }
    return {{gather(a, indices, batched.axes, batched.slice_size, s)}, {0}};
  }
  indices.push_back(arange(0, batch, s));
  batched.axes.push_back(0);
  Shape sizes = with_batch(batched.slice_size, 1);
  array out = gather(a, indices, batched.axes, sizes, s);
  return {{squeeze(out, 1, s)}, {0}};
}

// ---- DynamicSliceUpdate

std::vector<Shape> DynamicSliceUpdate::output_shapes(
    const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> DynamicSliceUpdate::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  check_not_indices("slice_update", argnums, 2, 2);
  std::vector<array> t = filled_tangents(primals, tangents, argnums, stream());
  return {
      dynamic_slice_update(t[0], t[1], primals[2], params().axes, stream())};
}

std::vector<array> DynamicSliceUpdate::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  check_not_indices("slice_update", argnums, 2, 2);
  const array& c = cotangents[0];
  const Shape& size = primals[1].shape();
  const std::vector<int>& axes = params().axes;
  std::vector<array> grads;
  for (int argnum : argnums) {
    grads.push_back(
        argnum == 0 ? dynamic_slice_update(
                          c,
                          zeros(size, c.dtype(), stream()),
                          primals[2],
                          axes,
                          stream())
                    : dynamic_slice(c, primals[2], {axes, size}, stream()));
  }
  return grads;
}

Batched DynamicSliceUpdate::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  ShapeElem batch = batch_size(inputs, axes);
  array src = with_batch(inputs[0], axes[0], batch, s);
  array update = with_batch(inputs[1], axes[1], batch, s);
  std::vector<int> along = shifted(params().axes);
  if (axes[2] < 0) {
    return {{dynamic_slice_update(src, update, inputs[2], along, s)}, {0}};
  }
  array starts = batch_to_front(inputs[2], axes[2], s);
  std::vector<array> indices;
  for (size_t i = 0; i < along.size(); ++i) {
    ShapeElem length = src.shape(along[i]);
    indices.push_back(clamped_start(
        start_entry(starts, i, s), length, length - update.shape(along[i]), s));
  }
  indices.push_back(arange(0, batch, s));
  along.push_back(0);
  return {{scatter(src, indices, expand_dims(update, 1, s), along, s)}, {0}};
}

}  // namespace mlx::core
