// Joining, splitting, repeating and shifting functions.
#include <algorithm>
#include <numeric>

#include "graph/claims.h"
#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/join.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

int ndim_of(const array& a) {
  return static_cast<int>(a.ndim());
}

std::vector<array> make_parts(const array& a, SplitParams params, Stream s) {
  auto op = std::make_shared<Split>(s, std::move(params));
  std::vector<Shape> shapes = op->output_shapes({a});
  std::vector<Dtype> dtypes(shapes.size(), a.dtype());
  return array::make_arrays(std::move(shapes), dtypes, op, {a});
}

// unstack where the number of parts is set.
std::vector<array> unstack_into(const array& a, int count, int axis, Stream s) {
  if (a.shape(axis) != count) {
    invalid(
        "unstack",
        "axis ",
        axis,
        " of ",
        a.shape(),
        " was traced with length ",
        count,
        ". Expected the same: it is the number of results.");
  }
  return unstack(a, axis, s);
}

}  // namespace

array concatenate(std::vector<array> arrays, int axis, StreamOrDevice s) {
  if (detail::lengths_open(arrays)) {
    return detail::postpone(
        "concatenate",
        arrays,
        to_stream(s),
        [=, s = to_stream(s)](const std::vector<array>& in) {
          return std::vector<array>{concatenate(in, axis, s)};
        })[0];
  }
  if (arrays.empty()) {
    invalid("concatenate", "no arrays given. Expected at least one.");
  }
  const Shape first = arrays[0].shape();
  axis = checked_axis("concatenate", axis, ndim_of(arrays[0]));
  Dtype dtype = result_type(arrays);
  for (array& a : arrays) {
    Shape shape = a.shape();
    if (shape.size() == first.size()) {
      shape[axis] = first[axis];
    }
    if (shape != first) {
      invalid(
          "concatenate",
          "shapes differ outside of axis ",
          axis,
          ": ",
          first,
          " and ",
          a.shape(),
          ".");
    }
    a = astype(a, dtype, s);
  }
  if (arrays.size() == 1) {
    return arrays[0];
  }
  auto op = std::make_shared<Concatenate>(to_stream(s), AxisParams{axis});
  Shape shape = op->output_shapes(arrays)[0];
  return array(std::move(shape), dtype, op, std::move(arrays));
}

array concatenate(std::vector<array> arrays, StreamOrDevice s) {
  for (array& a : arrays) {
    a = flatten(a, s);
  }
  return concatenate(std::move(arrays), 0, s);
}

array stack(const std::vector<array>& arrays, int axis, StreamOrDevice s) {
  if (arrays.empty()) {
    invalid("stack", "no arrays given. Expected at least one.");
  }
  std::vector<array> expanded;
  for (const array& a : arrays) {
    if (a.shape() != arrays[0].shape()) {
      invalid(
          "stack",
          "shapes differ: ",
          arrays[0].shape(),
          " and ",
          a.shape(),
          ".");
    }
    expanded.push_back(expand_dims(a, axis, s));
  }
  int ndim = ndim_of(arrays[0]) + 1;
  return concatenate(std::move(expanded), checked_axis("stack", axis, ndim), s);
}

array stack(const std::vector<array>& arrays, StreamOrDevice s) {
  return stack(arrays, 0, s);
}

std::vector<array> split(
    const array& a, const Shape& indices, int axis, StreamOrDevice s) {
  MLX_POSTPONE_ALL("split", split(in[0], indices, axis, s), a);
  axis = checked_axis("split", axis, ndim_of(a));
  if (indices.empty()) {
    return {a};
  }
  Shape found = indices;
  for (ShapeElem& i : found) {
    i = std::clamp(i < 0 ? i + a.shape(axis) : i, 0, a.shape(axis));
  }
  if (std::is_sorted(found.begin(), found.end())) {
    return make_parts(a, SplitParams{found, axis}, to_stream(s));
  }
  // NumPy allows indices in any order; parts that run backwards are empty.
  std::vector<array> parts;
  for (size_t i = 0; i <= found.size(); ++i) {
    Shape start(a.ndim(), 0);
    Shape stop = a.shape();
    start[axis] = i ? found[i - 1] : 0;
    stop[axis] = i < found.size() ? found[i] : a.shape(axis);
    parts.push_back(slice(a, start, stop, s));
  }
  return parts;
}

std::vector<array> split(
    const array& a, const Shape& indices, StreamOrDevice s) {
  return split(a, indices, 0, s);
}

std::vector<array> split(
    const array& a, int num_splits, int axis, StreamOrDevice s) {
  MLX_POSTPONE_ALL("split", split(in[0], num_splits, axis, s), a);
  axis = checked_axis("split", axis, ndim_of(a));
  if (num_splits <= 0 || a.shape(axis) % num_splits != 0) {
    invalid(
        "split",
        "axis ",
        axis,
        " of length ",
        a.shape(axis),
        " cannot be split into ",
        num_splits,
        " equal parts.");
  }
  Shape indices;
  for (int i = 1; i < num_splits; ++i) {
    indices.push_back(i * (a.shape(axis) / num_splits));
  }
  return split(a, indices, axis, s);
}

std::vector<array> split(const array& a, int num_splits, StreamOrDevice s) {
  return split(a, num_splits, 0, s);
}

std::vector<array> unstack(const array& a, int axis, StreamOrDevice s) {
  axis = checked_axis("unstack", axis, ndim_of(a));
  int count = a.shape(axis);
  MLX_POSTPONE_ALL("unstack", unstack_into(in[0], count, axis, s), a);
  if (count == 0) {
    return {};
  }
  std::vector<array> parts = split(a, count, axis, s);
  for (array& part : parts) {
    part = squeeze(part, axis, s);
  }
  return parts;
}

std::vector<array> unstack(const array& a, StreamOrDevice s) {
  return unstack(a, 0, s);
}

array repeat(const array& arr, int repeats, int axis, StreamOrDevice s) {
  MLX_POSTPONE("repeat", repeat(in[0], repeats, axis, s), arr);
  axis = checked_axis("repeat", axis, ndim_of(arr));
  if (repeats < 0) {
    invalid("repeat", "negative count: ", repeats, ".");
  }
  Shape wide = arr.shape();
  wide.insert(wide.begin() + axis + 1, repeats);
  Shape merged = arr.shape();
  merged[axis] = safe_cast(int64_t{merged[axis]} * repeats, "repeat");
  array out = broadcast_to(expand_dims(arr, axis + 1, s), wide, s);
  return reshape(out, merged, s);
}

array repeat(const array& arr, int repeats, StreamOrDevice s) {
  return repeat(flatten(arr, s), repeats, 0, s);
}

array tile(const array& arr, std::vector<int> reps, StreamOrDevice s) {
  MLX_POSTPONE("tile", tile(in[0], reps, s), arr);
  Shape shape = arr.shape();
  if (reps.size() < shape.size()) {
    reps.insert(reps.begin(), shape.size() - reps.size(), 1);
  }
  shape.insert(shape.begin(), reps.size() - shape.size(), 1);
  Shape narrow, wide, merged;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reps[i] < 0) {
      invalid("tile", "negative count: ", reps, ".");
    }
    narrow.push_back(1);
    narrow.push_back(shape[i]);
    wide.push_back(reps[i]);
    wide.push_back(shape[i]);
    merged.push_back(safe_cast(int64_t{reps[i]} * shape[i], "tile"));
  }
  return reshape(broadcast_to(reshape(arr, narrow, s), wide, s), merged, s);
}

// ---- roll

// Shifts and axes that differ in number are paired as NumPy broadcasts them:
// one of them stands beside all of the others.
array roll(
    const array& a,
    const Shape& shift,
    const std::vector<int>& axes,
    StreamOrDevice s) {
  MLX_POSTPONE("roll", roll(in[0], shift, axes, s), a);
  if (shift.size() != axes.size() && shift.size() != 1 && axes.size() != 1) {
    invalid(
        "roll",
        shift.size(),
        " shifts for ",
        axes.size(),
        " axes. Expected as many, or one of either.");
  }
  size_t count = shift.size() == 1 ? axes.size() : shift.size();
  array out = a;
  for (size_t i = 0; i < count; ++i) {
    int axis = checked_axis("roll", axes[axes.size() == 1 ? 0 : i], ndim_of(a));
    int n = a.shape(axis);
    int by = n ? (shift[shift.size() == 1 ? 0 : i] % n + n) % n : 0;
    if (by != 0) {
      std::vector<array> parts = split(out, Shape{n - by}, axis, s);
      out = concatenate({parts[1], parts[0]}, axis, s);
    }
  }
  return out;
}

array roll(const array& a, int shift, StreamOrDevice s) {
  MLX_POSTPONE("roll", roll(in[0], shift, s), a);
  return reshape(
      roll(flatten(a, s), Shape{shift}, std::vector<int>{0}, s), a.shape(), s);
}

array roll(const array& a, const Shape& shift, StreamOrDevice s) {
  int total = std::accumulate(shift.begin(), shift.end(), 0);
  return roll(a, total, s);
}

array roll(const array& a, int shift, int axis, StreamOrDevice s) {
  return roll(a, Shape{shift}, std::vector<int>{axis}, s);
}

array roll(
    const array& a, int shift, const std::vector<int>& axes, StreamOrDevice s) {
  return roll(a, Shape{shift}, axes, s);
}

array roll(const array& a, const Shape& shift, int axis, StreamOrDevice s) {
  int total = std::accumulate(shift.begin(), shift.end(), 0);
  return roll(a, total, axis, s);
}

// ---- small conveniences

std::vector<array> meshgrid(
    const std::vector<array>& arrays,
    bool sparse,
    const std::string& indexing,
    StreamOrDevice s) {
  MLX_POSTPONE_LIST("meshgrid", meshgrid(in, sparse, indexing, s), arrays);
  if (indexing != "xy" && indexing != "ij") {
    invalid("meshgrid", "unknown indexing: ", indexing, ". Expected xy or ij.");
  }
  std::vector<array> outputs;
  int ndim = static_cast<int>(arrays.size());
  for (int i = 0; i < ndim; ++i) {
    Shape shape(ndim, 1);
    int axis = indexing == "xy" && i < 2 && ndim > 1 ? 1 - i : i;
    shape[axis] = safe_cast(arrays[i].size(), "meshgrid");
    outputs.push_back(reshape(arrays[i], shape, s));
  }
  return sparse ? outputs : broadcast_arrays(outputs, s);
}

array atleast_1d(const array& a, StreamOrDevice s) {
  return a.ndim() == 0 ? reshape(a, {1}, s) : a;
}

array atleast_2d(const array& a, StreamOrDevice s) {
  return a.ndim() >= 2 ? a : expand_dims(atleast_1d(a, s), 0, s);
}

array atleast_3d(const array& a, StreamOrDevice s) {
  return a.ndim() >= 3 ? a : expand_dims(atleast_2d(a, s), 2, s);
}

#define MLX_FOR_EACH_ARRAY(function)                                           \
  std::vector<array> function(const std::vector<array>& a, StreamOrDevice s) { \
    std::vector<array> out;                                                    \
    for (const array& x : a) {                                                 \
      out.push_back(function(x, s));                                           \
    }                                                                          \
    return out;                                                                \
  }
MLX_FOR_EACH_ARRAY(atleast_1d)
MLX_FOR_EACH_ARRAY(atleast_2d)
MLX_FOR_EACH_ARRAY(atleast_3d)
#undef MLX_FOR_EACH_ARRAY

array number_of_elements(
    const array& a,
    std::vector<int> axes,
    bool inverted,
    Dtype dtype,
    StreamOrDevice s) {
  for (int& axis : axes) {
    axis = checked_axis("number_of_elements", axis, ndim_of(a));
  }
  return make_node<NumberOfElements>(
      Shape{},
      dtype,
      {a},
      to_stream(s),
      NumberOfElementsParams{std::move(axes), inverted, dtype});
}

std::vector<array> depends(
    const std::vector<array>& inputs, const std::vector<array>& dependencies) {
  if (inputs.empty()) {
    return {};
  }
  std::vector<array> all = inputs;
  all.insert(all.end(), dependencies.begin(), dependencies.end());
  Stream s = detail::stream_of(inputs[0], to_stream({}));
  auto op = std::make_shared<Depends>(
      s, DependsParams{static_cast<int>(inputs.size())});
  std::vector<Dtype> dtypes;
  for (const array& in : inputs) {
    dtypes.push_back(in.dtype());
  }
  return array::make_arrays(op->output_shapes(inputs), dtypes, op, all);
}

}  // namespace mlx::core
