// Rearranging functions that make one view node or none.
#include "mlx/ops/shape.h"

#include <algorithm>
#include <numeric>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

int ndim_of(const array& a) {
  return static_cast<int>(a.ndim());
}

// Axes counted from 0, checked and without repetition, sorted.
std::vector<int> checked_axes(
    const char* op, const std::vector<int>& axes, int ndim) {
  std::vector<int> out;
  out.reserve(axes.size());
  for (int axis : axes) {
    out.push_back(checked_axis(op, axis, ndim));
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    invalid(op, "an axis is named twice: ", axes, ".");
  }
  return out;
}

template <typename Op, typename Params>
array view_node(const array& a, Params params, Shape shape, Stream s) {
  return make_node<Op>(std::move(shape), a.dtype(), {a}, s, std::move(params));
}

// Shape of a reshape with -1 filled in.
Shape resolved_shape(const array& a, Shape shape) {
  int unknown = -1;
  size_t known = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = static_cast<int>(i);
    } else if (shape[i] < 0) {
      invalid(
          "reshape",
          "bad shape: ",
          shape,
          ". Entries are at least 0, and one may be -1.");
    } else {
      known *= shape[i];
    }
  }
  if (unknown >= 0) {
    if (known == 0 || a.size() % known != 0) {
      invalid(
          "reshape",
          "cannot infer the -1 of ",
          shape,
          " for ",
          a.size(),
          " elements.");
    }
    shape[unknown] = safe_cast(a.size() / known, "reshape");
    known *= shape[unknown];
  }
  if (known != a.size()) {
    invalid(
        "reshape",
        "cannot reshape ",
        a.shape(),
        " to ",
        shape,
        ". The number of elements must stay.");
  }
  return shape;
}

}  // namespace

array astype(array a, Dtype dtype, StreamOrDevice s) {
  if (a.dtype() == dtype) {
    return a;
  }
  Shape shape = a.shape();
  return make_node<AsType>(
      std::move(shape),
      dtype,
      {std::move(a)},
      to_stream(s),
      DtypeParams{dtype});
}

array view(const array& a, const Dtype& dtype, StreamOrDevice s) {
  MLX_POSTPONE("view", view(in[0], dtype, s), a);
  if (a.dtype() == dtype) {
    return a;
  }
  if (a.itemsize() != dtype.size()) {
    if (a.ndim() == 0) {
      invalid(
          "view",
          "the element size changes for a 0-d array: ",
          a.dtype(),
          " to ",
          dtype,
          ". Expected types of equal size.");
    }
    if (a.itemsize() * a.shape(-1) % dtype.size() != 0) {
      invalid(
          "view",
          "the last axis does not fill whole elements: ",
          a.shape(),
          " ",
          a.dtype(),
          " as ",
          dtype,
          ".");
    }
  }
  auto op = std::make_shared<View>(to_stream(s), DtypeParams{dtype});
  return array(op->output_shapes({a})[0], dtype, op, {a});
}

array as_strided(
    array a, Shape shape, Strides strides, size_t offset, StreamOrDevice s) {
  MLX_POSTPONE("as_strided", as_strided(in[0], shape, strides, offset, s), a);
  if (shape.size() != strides.size()) {
    invalid(
        "as_strided",
        "shape and strides differ in length: ",
        shape,
        " and ",
        strides,
        ".");
  }
  int64_t low = static_cast<int64_t>(offset);
  int64_t high = low;
  bool empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) {
      invalid("as_strided", "negative dimension: ", shape, ".");
    }
    empty = empty || shape[i] == 0;
    int64_t reach = (int64_t{shape[i]} - 1) * strides[i];
    (reach < 0 ? low : high) += reach;
  }
  if (!empty && (low < 0 || high >= static_cast<int64_t>(a.size()))) {
    invalid(
        "as_strided",
        "reaches elements ",
        low,
        " to ",
        high,
        " of ",
        a.size(),
        ". Shape, strides and offset must stay inside.");
  }
  return view_node<AsStrided>(
      a,
      AsStridedParams{shape, std::move(strides), offset},
      shape,
      to_stream(s));
}

array contiguous(const array& a, bool allow_col_major, StreamOrDevice s) {
  return view_node<Contiguous>(
      a, ContiguousParams{allow_col_major}, a.shape(), to_stream(s));
}

array copy(array a, StreamOrDevice s) {
  return view_node<Copy>(a, NoParams{}, a.shape(), to_stream(s));
}

array stop_gradient(const array& a, StreamOrDevice s) {
  return view_node<StopGradient>(a, NoParams{}, a.shape(), to_stream(s));
}

array reshape(const array& a, Shape shape, StreamOrDevice s) {
  MLX_POSTPONE("reshape", reshape(in[0], shape, s), a);
  if (a.shape() == shape) {
    return a;
  }
  Shape found = resolved_shape(a, std::move(shape));
  if (a.shape() == found) {
    return a;
  }
  return view_node<Reshape>(a, ShapeParams{found}, found, to_stream(s));
}

array unflatten(const array& a, int axis, Shape shape, StreamOrDevice s) {
  MLX_POSTPONE("unflatten", unflatten(in[0], axis, shape, s), a);
  if (shape.empty()) {
    invalid("unflatten", "empty shape. Expected at least one entry.");
  }
  axis = checked_axis("unflatten", axis, ndim_of(a));
  if (std::count(shape.begin(), shape.end(), -1) > 1) {
    invalid("unflatten", "more than one -1: ", shape, ".");
  }
  auto op =
      std::make_shared<Unflatten>(to_stream(s), UnflattenParams{axis, shape});
  return array(op->output_shapes({a})[0], a.dtype(), op, {a});
}

array flatten(const array& a, int start_axis, int end_axis, StreamOrDevice s) {
  int ndim = ndim_of(a);
  if (ndim == 0) {
    return reshape(a, {1}, s);
  }
  int first = checked_axis("flatten", std::max(start_axis, -ndim), ndim);
  int last = checked_axis("flatten", std::min(end_axis, ndim - 1), ndim);
  if (first > last) {
    invalid(
        "flatten",
        "start_axis ",
        start_axis,
        " lies after end_axis ",
        end_axis,
        ".");
  }
  if (first == last) {
    return a;
  }
  auto op = std::make_shared<Flatten>(to_stream(s), FlattenParams{first, last});
  return array(op->output_shapes({a})[0], a.dtype(), op, {a});
}

array flatten(const array& a, StreamOrDevice s) {
  return flatten(a, 0, -1, s);
}

array squeeze(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  MLX_POSTPONE("squeeze", squeeze(in[0], axes, s), a);
  std::vector<int> sorted = checked_axes("squeeze", axes, ndim_of(a));
  for (int axis : sorted) {
    if (a.shape(axis) != 1) {
      invalid(
          "squeeze", "axis ", axis, " of ", a.shape(), " is not of length 1.");
    }
  }
  if (sorted.empty()) {
    return a;
  }
  auto op = std::make_shared<Squeeze>(to_stream(s), AxesParams{sorted});
  return array(op->output_shapes({a})[0], a.dtype(), op, {a});
}

array squeeze(const array& a, int axis, StreamOrDevice s) {
  return squeeze(a, std::vector<int>{axis}, s);
}

array squeeze(const array& a, StreamOrDevice s) {
  std::vector<int> axes;
  for (int i = 0; i < ndim_of(a); ++i) {
    if (a.shape(i) == 1) {
      axes.push_back(i);
    }
  }
  return squeeze(a, axes, s);
}

array expand_dims(
    const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  int ndim = ndim_of(a) + static_cast<int>(axes.size());
  std::vector<int> sorted = checked_axes("expand_dims", axes, ndim);
  if (sorted.empty()) {
    return a;
  }
  auto op = std::make_shared<ExpandDims>(to_stream(s), AxesParams{sorted});
  return array(op->output_shapes({a})[0], a.dtype(), op, {a});
}

array expand_dims(const array& a, int axis, StreamOrDevice s) {
  return expand_dims(a, std::vector<int>{axis}, s);
}

array transpose(const array& a, std::vector<int> axes, StreamOrDevice s) {
  if (axes.size() != a.ndim()) {
    invalid(
        "transpose",
        axes.size(),
        " axes given for an array of ",
        a.ndim(),
        " dimensions. Expected one for each.");
  }
  for (int& axis : axes) {
    axis = checked_axis("transpose", axis, ndim_of(a));
  }
  for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
    if (std::find(axes.begin(), axis, *axis) != axis) {
      invalid("transpose", "an axis is named twice: ", axes, ".");
    }
  }
  if (std::is_sorted(axes.begin(), axes.end())) {
    return a;
  }
  Shape shape;
  for (int axis : axes) {
    shape.push_back(a.shape(axis));
  }
  return view_node<Transpose>(
      a, AxesParams{std::move(axes)}, std::move(shape), to_stream(s));
}

array transpose(const array& a, StreamOrDevice s) {
  std::vector<int> axes(a.ndim());
  std::iota(axes.rbegin(), axes.rend(), 0);
  return transpose(a, std::move(axes), s);
}

array swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s) {
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(
      axes[checked_reduction_axis("swapaxes", axis1, ndim_of(a))],
      axes[checked_reduction_axis("swapaxes", axis2, ndim_of(a))]);
  return transpose(a, std::move(axes), s);
}

array moveaxis(const array& a, int source, int destination, StreamOrDevice s) {
  int from = checked_reduction_axis("moveaxis", source, ndim_of(a));
  int to = checked_reduction_axis("moveaxis", destination, ndim_of(a));
  std::vector<int> axes = remaining_axes(ndim_of(a), {from});
  axes.insert(axes.begin() + to, from);
  return transpose(a, std::move(axes), s);
}

array flip(const array& a, const std::vector<int>& axes, StreamOrDevice s) {
  MLX_POSTPONE("flip", flip(in[0], axes, s), a);
  SliceParams params;
  std::vector<int> sorted = checked_axes("flip", axes, ndim_of(a));
  for (int i = 0; i < ndim_of(a); ++i) {
    bool reversed = std::binary_search(sorted.begin(), sorted.end(), i);
    params.start.push_back(reversed ? a.shape(i) - 1 : 0);
    params.stop.push_back(reversed ? -1 : a.shape(i));
    params.strides.push_back(reversed ? -1 : 1);
  }
  return sorted.empty() ? a
                        : view_node<Slice>(a, params, a.shape(), to_stream(s));
}

array flip(const array& a, int axis, StreamOrDevice s) {
  return flip(a, std::vector<int>{axis}, s);
}

array flip(const array& a, StreamOrDevice s) {
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  return flip(a, axes, s);
}

array broadcast_to(const array& a, const Shape& shape, StreamOrDevice s) {
  MLX_POSTPONE("broadcast_to", broadcast_to(in[0], shape, s), a);
  if (a.shape() == shape) {
    return a;
  }
  if (broadcast_shapes(a.shape(), shape) != shape) {
    invalid("broadcast_to", "cannot broadcast ", a.shape(), " to ", shape, ".");
  }
  return view_node<Broadcast>(a, ShapeParams{shape}, shape, to_stream(s));
}

std::vector<array> broadcast_arrays(
    const std::vector<array>& inputs, StreamOrDevice s) {
  MLX_POSTPONE_LIST("broadcast_arrays", broadcast_arrays(in, s), inputs);
  Shape shape;
  for (const array& in : inputs) {
    shape = broadcast_shapes(shape, in.shape());
  }
  std::vector<array> outputs;
  for (const array& in : inputs) {
    outputs.push_back(broadcast_to(in, shape, s));
  }
  return outputs;
}

array slice(
    const array& a, Shape start, Shape stop, Shape strides, StreamOrDevice s) {
  MLX_POSTPONE("slice", slice(in[0], start, stop, strides, s), a);
  SliceParams params = normalized_slice(
      "slice",
      a.shape(),
      std::move(start),
      std::move(stop),
      std::move(strides));
  if (is_whole(params, a.shape())) {
    return a;
  }
  Shape shape = slice_shape(params);
  return view_node<Slice>(a, std::move(params), std::move(shape), to_stream(s));
}

array slice(const array& a, Shape start, Shape stop, StreamOrDevice s) {
  return slice(a, std::move(start), std::move(stop), Shape(a.ndim(), 1), s);
}

}  // namespace mlx::core
