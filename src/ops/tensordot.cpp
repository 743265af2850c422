// Contractions and outer products, made of other products.
#include <algorithm>
#include <numeric>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core {

namespace {

int ndim_of(const array& x) {
  return static_cast<int>(x.ndim());
}

std::vector<int> checked_axes(const std::vector<int>& axes, const array& x) {
  std::vector<int> out;
  for (int axis : axes) {
    axis = checked_axis("tensordot", axis, ndim_of(x));
    if (std::find(out.begin(), out.end(), axis) != out.end()) {
      invalid("tensordot", "axis ", axis, " is named twice.");
    }
    out.push_back(axis);
  }
  return out;
}

std::vector<int> other_axes(const std::vector<int>& axes, int ndim) {
  std::vector<int> out;
  for (int i = 0; i < ndim; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
      out.push_back(i);
    }
  }
  return out;
}

std::vector<int> joined(std::vector<int> first, const std::vector<int>& last) {
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

ShapeElem length_of(const array& x, const std::vector<int>& axes) {
  int64_t length = 1;
  for (int axis : axes) {
    length *= x.shape(axis);
  }
  return safe_cast(length, "tensordot");
}

}  // namespace

array tensordot(
    const array& a,
    const array& b,
    const std::vector<int>& axes_a,
    const std::vector<int>& axes_b,
    StreamOrDevice s) {
  MLX_POSTPONE("tensordot", tensordot(in[0], in[1], axes_a, axes_b, s), a, b);
  if (axes_a.size() != axes_b.size()) {
    invalid(
        "tensordot",
        "numbers of axes differ: ",
        axes_a.size(),
        " and ",
        axes_b.size(),
        ".");
  }
  std::vector<int> inner_a = checked_axes(axes_a, a);
  std::vector<int> inner_b = checked_axes(axes_b, b);
  for (size_t i = 0; i < inner_a.size(); ++i) {
    if (a.shape(inner_a[i]) != b.shape(inner_b[i])) {
      invalid(
          "tensordot",
          "lengths of the contracted axes differ: axis ",
          inner_a[i],
          " of ",
          a.shape(),
          " and axis ",
          inner_b[i],
          " of ",
          b.shape(),
          ".");
    }
  }
  std::vector<int> outer_a = other_axes(inner_a, ndim_of(a));
  std::vector<int> outer_b = other_axes(inner_b, ndim_of(b));
  ShapeElem depth = length_of(a, inner_a);
  array left = reshape(
      transpose(a, joined(outer_a, inner_a), s),
      {length_of(a, outer_a), depth},
      s);
  array right = reshape(
      transpose(b, joined(inner_b, outer_b), s),
      {depth, length_of(b, outer_b)},
      s);
  Shape shape;
  for (int axis : outer_a) {
    shape.push_back(a.shape(axis));
  }
  for (int axis : outer_b) {
    shape.push_back(b.shape(axis));
  }
  return reshape(matmul(left, right, s), shape, s);
}

array tensordot(
    const array& a, const array& b, const int axis, StreamOrDevice s) {
  if (axis < 0 || axis > std::min(ndim_of(a), ndim_of(b))) {
    invalid(
        "tensordot",
        "cannot contract ",
        axis,
        " axes of ",
        a.shape(),
        " and ",
        b.shape(),
        ". Expected 0 to the smaller number of axes.");
  }
  std::vector<int> axes_a(static_cast<size_t>(axis));
  std::vector<int> axes_b(static_cast<size_t>(axis));
  std::iota(axes_a.begin(), axes_a.end(), ndim_of(a) - axis);
  std::iota(axes_b.begin(), axes_b.end(), 0);
  return tensordot(a, b, axes_a, axes_b, s);
}

array outer(const array& a, const array& b, StreamOrDevice s) {
  array column = expand_dims(flatten(a, s), 1, s);
  return multiply(column, flatten(b, s), s);
}

array inner(const array& a, const array& b, StreamOrDevice s) {
  MLX_POSTPONE("inner", inner(in[0], in[1], s), a, b);
  if (a.ndim() == 0 || b.ndim() == 0) {
    return multiply(a, b, s);
  }
  if (a.shape(-1) != b.shape(-1)) {
    invalid(
        "inner",
        "last dimensions differ: ",
        a.shape(),
        " and ",
        b.shape(),
        ".");
  }
  return tensordot(a, b, {-1}, {-1}, s);
}

array kron(const array& a, const array& b, StreamOrDevice s) {
  MLX_POSTPONE("kron", kron(in[0], in[1], s), a, b);
  if (a.size() == 0 || b.size() == 0) {
    invalid("kron", "an empty array: ", a.shape(), " and ", b.shape(), ".");
  }
  size_t ndim = std::max(a.ndim(), b.ndim());
  Shape of_a(ndim - a.ndim(), 1), of_b(ndim - b.ndim(), 1);
  of_a.insert(of_a.end(), a.shape().begin(), a.shape().end());
  of_b.insert(of_b.end(), b.shape().begin(), b.shape().end());
  Shape spread_a, spread_b, merged;
  for (size_t i = 0; i < ndim; ++i) {
    spread_a.push_back(of_a[i]);
    spread_a.push_back(1);
    spread_b.push_back(1);
    spread_b.push_back(of_b[i]);
    merged.push_back(safe_cast(int64_t{of_a[i]} * of_b[i], "kron"));
  }
  array products =
      multiply(reshape(a, spread_a, s), reshape(b, spread_b, s), s);
  return reshape(products, merged, s);
}

array vecdot(const array& a, const array& b, int axis, StreamOrDevice s) {
  MLX_POSTPONE("vecdot", vecdot(in[0], in[1], axis, s), a, b);
  int axis_a = checked_axis("vecdot", axis, ndim_of(a));
  int axis_b = checked_axis("vecdot", axis, ndim_of(b));
  if (a.shape(axis_a) != b.shape(axis_b)) {
    invalid(
        "vecdot",
        "lengths of axis ",
        axis,
        " differ: ",
        a.shape(),
        " and ",
        b.shape(),
        ".");
  }
  array left = moveaxis(a, axis_a, -1, s);
  array right = moveaxis(b, axis_b, -1, s);
  Dtype dtype = result_type(a, b);
  if (dtype == float16 || dtype == bfloat16) {
    // Neither the products nor their sum may round in between.
    left = astype(left, float32, s);
    right = astype(right, float32, s);
    return astype(sum(multiply(left, right, s), -1, false, s), dtype, s);
  }
  if (a.dtype() == complex64) {
    left = conjugate(left, s);
  }
  return sum(multiply(left, right, s), -1, false, s);
}

}  // namespace mlx::core
