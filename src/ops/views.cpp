// Shape rules, derivatives and batch rules of the view operations.
#include "ops/views.h"

#include <algorithm>
#include <numeric>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/rules.h"
#include "types/error.h"

namespace mlx::core {

SliceParams normalized_slice(
    const char* op,
    const Shape& shape,
    Shape start,
    Shape stop,
    Shape strides) {
  size_t ndim = shape.size();
  if (start.size() != ndim || stop.size() != ndim || strides.size() != ndim) {
    invalid(
        op,
        "start, stop and strides have ",
        start.size(),
        ", ",
        stop.size(),
        " and ",
        strides.size(),
        " entries for an array of ",
        ndim,
        " dimensions. Expected one entry an axis.");
  }
  for (size_t i = 0; i < ndim; ++i) {
    if (strides[i] == 0) {
      invalid(op, "a stride is 0: ", strides, ". Expected others.");
    }
    int n = shape[i];
    int low = strides[i] > 0 ? 0 : -1;
    int high = strides[i] > 0 ? n : n - 1;
    start[i] = std::clamp(start[i] < 0 ? start[i] + n : start[i], low, high);
    stop[i] = std::clamp(stop[i] < 0 ? stop[i] + n : stop[i], low, high);
  }
  return {std::move(start), std::move(stop), std::move(strides)};
}

bool is_whole(const SliceParams& slice, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (slice.start[i] != 0 || slice.stop[i] != shape[i] ||
        slice.strides[i] != 1) {
      return false;
    }
  }
  return true;
}

Shape slice_shape(const SliceParams& slice) {
  Shape shape(slice.start.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t step = slice.strides[i];
    int64_t length = int64_t{slice.stop[i]} - slice.start[i];
    int64_t n = (length + step - (step > 0 ? 1 : -1)) / step;
    shape[i] = static_cast<ShapeElem>(std::max<int64_t>(n, 0));
  }
  return shape;
}

std::vector<int> remaining_axes(int ndim, const std::vector<int>& axes) {
  std::vector<int> rest;
  for (int i = 0; i < ndim; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
      rest.push_back(i);
    }
  }
  return rest;
}

array sum_to_shape(const array& x, const Shape& shape, Stream s) {
  if (x.shape() == shape) {
    return x;
  }
  int extra = static_cast<int>(x.ndim() - shape.size());
  std::vector<int> axes;
  for (int i = 0; i < static_cast<int>(x.ndim()); ++i) {
    if (i < extra || (shape[i - extra] == 1 && x.shape(i) != 1)) {
      axes.push_back(i);
    }
  }
  return reshape(sum(x, axes, true, s), shape, s);
}

array sum_like(const array& x, const array& like, Stream s) {
  MLX_POSTPONE("sum_like", sum_like(in[0], in[1], s), x, like);
  return sum_to_shape(x, like.shape(), s);
}

array batch_to_front(const array& x, int axis, Stream s) {
  return axis <= 0 ? x : moveaxis(x, axis, 0, s);
}

array batch_to_front(const array& x, int axis, int ndim, Stream s) {
  if (axis < 0) {
    return x;
  }
  array front = batch_to_front(x, axis, s);
  std::vector<int> missing(ndim + 1 - front.ndim());
  std::iota(missing.begin(), missing.end(), 1);
  return missing.empty() ? front : expand_dims(front, missing, s);
}

// ---- element type

std::vector<array> AsType::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {astype(cotangents[0], primals[0].dtype(), stream())};
}

Batched AsType::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  return {{apply(inputs[0])}, axes};
}

std::vector<Shape> View::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  size_t from = inputs[0].itemsize();
  size_t to = params().dtype.size();
  if (from != to) {
    shape.back() = safe_cast(shape.back() * from / to, "view");
  }
  return {shape};
}

std::vector<array> View::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {view(cotangents[0], primals[0].dtype(), stream())};
}

Batched View::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  // The last axis changes its length, so the batch must not be there.
  return {
      {view(
          batch_to_front(inputs[0], axes[0], stream()),
          params().dtype,
          stream())},
      {0}};
}

// ---- strides

std::vector<array> AsStrided::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  // Positions of the row-major input that each output element came from.
  Stream s = stream();
  array positions = as_strided(
      reshape(
          arange(0, static_cast<int>(primals[0].size()), s),
          primals[0].shape(),
          s),
      params().shape,
      params().strides,
      params().offset,
      s);
  array flat = zeros(
      {static_cast<ShapeElem>(primals[0].size())}, cotangents[0].dtype(), s);
  array grads = scatter_add(
      flat,
      flatten(positions, s),
      reshape(cotangents[0], {static_cast<ShapeElem>(positions.size()), 1}, s),
      0,
      s);
  return {reshape(grads, primals[0].shape(), s)};
}

Batched AsStrided::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x =
      contiguous(batch_to_front(inputs[0], axes[0], stream()), false, stream());
  Strides strides = params().strides;
  int64_t batch_stride =
      x.shape(0) ? static_cast<int64_t>(x.size()) / x.shape(0) : 0;
  strides.insert(strides.begin(), batch_stride);
  return {
      {as_strided(
          x,
          with_batch(params().shape, x.shape(0)),
          strides,
          params().offset,
          stream())},
      {0}};
}

std::vector<array> Broadcast::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {sum_to_shape(cotangents[0], primals[0].shape(), stream())};
}

Batched Broadcast::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  int ndim = static_cast<int>(params().shape.size());
  array x = batch_to_front(inputs[0], axes[0], ndim, stream());
  return {
      {broadcast_to(x, with_batch(params().shape, x.shape(0)), stream())}, {0}};
}

// ---- reshapes

std::vector<Shape> Reshape::output_shapes(const std::vector<array>& inputs) {
  size_t size = 1;
  for (ShapeElem n : params().shape) {
    size *= n;
  }
  if (size != inputs[0].size()) {
    invalid(
        "reshape",
        "cannot reshape ",
        inputs[0].shape(),
        " to ",
        params().shape,
        ". The number of elements must stay.");
  }
  return {params().shape};
}

std::vector<array> Reshape::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {reshape(cotangents[0], primals[0].shape(), stream())};
}

Batched Reshape::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  return {{reshape(x, with_batch(params().shape, x.shape(0)), stream())}, {0}};
}

std::vector<Shape> Flatten::output_shapes(const std::vector<array>& inputs) {
  const Shape& in = inputs[0].shape();
  auto [first, last] = params();
  int64_t merged = 1;
  for (int i = first; i <= last; ++i) {
    merged *= in[i];
  }
  Shape shape(in.begin(), in.begin() + first);
  shape.push_back(safe_cast(merged, "flatten"));
  shape.insert(shape.end(), in.begin() + last + 1, in.end());
  return {shape};
}

std::vector<array> Flatten::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  const Shape& in = primals[0].shape();
  return {unflatten(
      cotangents[0],
      params().first,
      Shape(in.begin() + params().first, in.begin() + params().last + 1),
      stream())};
}

Batched Flatten::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  return {{flatten(x, params().first + 1, params().last + 1, stream())}, {0}};
}

std::vector<Shape> Unflatten::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  const auto& [axis, parts] = params();
  Shape found = parts;
  int64_t known = 1;
  for (ShapeElem n : parts) {
    known *= n < 0 ? 1 : n;
  }
  for (ShapeElem& n : found) {
    if (n < 0 && known > 0) {
      n = static_cast<ShapeElem>(shape[axis] / known);
      known *= n;
    }
  }
  if (known != shape[axis]) {
    invalid(
        "unflatten",
        "cannot split an axis of length ",
        shape[axis],
        " into ",
        parts,
        ". The product must be the axis' length.");
  }
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, found.begin(), found.end());
  return {shape};
}

std::vector<array> Unflatten::vjp(
    const std::vector<array>&,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  int last = params().axis + static_cast<int>(params().shape.size()) - 1;
  return {flatten(cotangents[0], params().axis, last, stream())};
}

Batched Unflatten::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  return {{unflatten(x, params().axis + 1, params().shape, stream())}, {0}};
}

std::vector<Shape> ExpandDims::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  for (int axis : params().axes) {
    shape.insert(shape.begin() + axis, 1);
  }
  return {shape};
}

std::vector<array> ExpandDims::vjp(
    const std::vector<array>&,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {squeeze(cotangents[0], params().axes, stream())};
}

Batched ExpandDims::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  return {{expand_dims(x, shifted(params().axes), stream())}, {0}};
}

std::vector<Shape> Squeeze::output_shapes(const std::vector<array>& inputs) {
  const Shape& in = inputs[0].shape();
  for (int axis : params().axes) {
    if (in[axis] != 1) {
      invalid("squeeze", "axis ", axis, " of ", in, " is not of length 1.");
    }
  }
  Shape shape;
  for (int i : remaining_axes(static_cast<int>(in.size()), params().axes)) {
    shape.push_back(in[i]);
  }
  return {shape};
}

std::vector<array> Squeeze::vjp(
    const std::vector<array>&,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {expand_dims(cotangents[0], params().axes, stream())};
}

Batched Squeeze::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  return {{squeeze(x, shifted(params().axes), stream())}, {0}};
}

// ---- transpose, slice

std::vector<Shape> Transpose::output_shapes(const std::vector<array>& inputs) {
  Shape shape;
  for (int axis : params().axes) {
    shape.push_back(inputs[0].shape(axis));
  }
  return {shape};
}

std::vector<array> Transpose::vjp(
    const std::vector<array>&,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  std::vector<int> inverse(params().axes.size());
  for (size_t i = 0; i < inverse.size(); ++i) {
    inverse[params().axes[i]] = static_cast<int>(i);
  }
  return {transpose(cotangents[0], inverse, stream())};
}

Batched Transpose::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  std::vector<int> order = shifted(params().axes);
  order.insert(order.begin(), 0);
  return {{transpose(x, order, stream())}, {0}};
}

std::vector<Shape> Slice::output_shapes(const std::vector<array>&) {
  return {slice_shape(params())};
}

std::vector<array> Slice::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  array blank = zeros(primals[0].shape(), cotangents[0].dtype(), stream());
  auto [start, stop, strides] = params();
  for (size_t i = 0; i < stop.size(); ++i) {
    // -1 means "before the first" here, but "the last" to slice_update.
    stop[i] -= stop[i] < 0 ? primals[0].shape(static_cast<int>(i)) : 0;
  }
  return {slice_update(blank, cotangents[0], start, stop, strides, stream())};
}

Batched Slice::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  SliceParams batched = params();
  batched.start.insert(batched.start.begin(), 0);
  batched.stop.insert(batched.stop.begin(), x.shape(0));
  batched.strides.insert(batched.strides.begin(), 1);
  return {
      {make_node<Slice>(
          slice_shape(batched), x.dtype(), {x}, stream(), batched)},
      {0}};
}

// ---- copies

#define MLX_SAME_SHAPE_RULES(Op)                                        \
  std::vector<array> Op::vjp(                                           \
      const std::vector<array>&,                                        \
      const std::vector<array>& cotangents,                             \
      const std::vector<int>&,                                          \
      const std::vector<array>&) {                                      \
    return {cotangents[0]};                                             \
  }                                                                     \
  Batched Op::vmap(                                                     \
      const std::vector<array>& inputs, const std::vector<int>& axes) { \
    return {{apply(inputs[0])}, axes};                                  \
  }
MLX_SAME_SHAPE_RULES(Copy)
MLX_SAME_SHAPE_RULES(Contiguous)
#undef MLX_SAME_SHAPE_RULES

std::vector<array> StopGradient::vjp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {zeros_like(primals[0], stream())};
}

std::vector<array> StopGradient::jvp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&) {
  return {zeros_like(primals[0], stream())};
}

Batched StopGradient::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  return {{apply(inputs[0])}, axes};
}

}  // namespace mlx::core
