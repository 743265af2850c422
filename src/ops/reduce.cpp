// Functions that combine elements along axes: checks, result types, and those
// composed of others.
#include "ops/reduce.h"

#include <algorithm>
#include <numeric>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

std::vector<int> reduction_axes(
    const char* op,
    const std::vector<int>& axes,
    int ndim,
    int (*check)(std::string_view, int, int)) {
  std::vector<int> out;
  for (int axis : axes) {
    out.push_back(check(op, axis, ndim));
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    invalid(op, "an axis is named twice: ", axes, ". Expected each once.");
  }
  return out;
}

std::vector<int> all_axes(const array& a) {
  std::vector<int> axes(a.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

array axes_to_last(const array& x, const std::vector<int>& axes, Stream s) {
  std::vector<int> order = remaining_axes(static_cast<int>(x.ndim()), axes);
  order.insert(order.end(), axes.begin(), axes.end());
  Shape shape;
  size_t kept = x.ndim() - axes.size();
  for (size_t i = 0; i < kept; ++i) {
    shape.push_back(x.shape(order[i]));
  }
  int64_t length = 1;
  for (int axis : axes) {
    length *= x.shape(axis);
  }
  shape.push_back(safe_cast(length, "reduce"));
  return reshape(transpose(x, order, s), shape, s);
}

array axes_from_last(
    const array& x,
    const std::vector<int>& axes,
    const Shape& shape,
    Stream s) {
  std::vector<int> order = remaining_axes(static_cast<int>(shape.size()), axes);
  order.insert(order.end(), axes.begin(), axes.end());
  Shape moved;
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    moved.push_back(shape[order[i]]);
    back[order[i]] = static_cast<int>(i);
  }
  return transpose(reshape(x, moved, s), back, s);
}

namespace {

int ndim_of(const array& a) {
  return static_cast<int>(a.ndim());
}

std::vector<int> strict_axes(
    const char* op, const array& a, const std::vector<int>& axes) {
  return reduction_axes(op, axes, ndim_of(a), checked_reduction_axis);
}

std::vector<int> plain_axes(
    const char* op, const array& a, const std::vector<int>& axes) {
  return reduction_axes(op, axes, ndim_of(a), checked_axis);
}

Shape reduced_shape(const array& a, const std::vector<int>& axes) {
  Shape shape = a.shape();
  for (int axis : axes) {
    shape[axis] = 1;
  }
  return shape;
}

array squeezed(
    const array& a, const std::vector<int>& axes, bool keepdims, Stream s) {
  return keepdims || axes.empty() ? a : squeeze(a, axes, s);
}

// `axes` are sorted and checked.
array reduced(
    const array& a,
    ReduceType type,
    const std::vector<int>& axes,
    Dtype dtype,
    bool keepdims,
    StreamOrDevice s) {
  Stream stream = to_stream(s);
  if (axes.empty()) {
    return type == ReduceType::all || type == ReduceType::any
               ? astype(a, bool_, stream)
               : a;
  }
  array out = make_node<Reduce>(
      reduced_shape(a, axes),
      dtype,
      {a},
      stream,
      ReduceParams{type, axes, dtype});
  return squeezed(out, axes, keepdims, stream);
}

array total(
    const char* op,
    ReduceType type,
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    StreamOrDevice s) {
  Dtype dtype = reduce_accumulator(type, a.dtype());
  if (issubdtype(a.dtype(), inexact)) {
    dtype = a.dtype();
  }
  return reduced(a, type, strict_axes(op, a, axes), dtype, keepdims, s);
}

array extreme(
    const char* op,
    ReduceType type,
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    StreamOrDevice s) {
  std::vector<int> sorted = strict_axes(op, a, axes);
  for (int axis : sorted) {
    if (a.shape(axis) == 0) {
      invalid(
          op,
          "axis ",
          axis,
          " of ",
          a.shape(),
          " is empty. Expected at least one element to choose from.");
    }
  }
  return reduced(a, type, sorted, a.dtype(), keepdims, s);
}

array argument(
    const char* op,
    bool largest,
    const array& a,
    int axis,
    bool keepdims,
    StreamOrDevice s) {
  axis = checked_reduction_axis(op, axis, ndim_of(a));
  if (a.size() == 0) {
    invalid(
        op,
        "the array is empty: ",
        a.shape(),
        ". Expected at least one element.");
  }
  Stream stream = to_stream(s);
  array out = make_node<ArgReduce>(
      reduced_shape(a, {axis}),
      uint32,
      {a},
      stream,
      ArgReduceParams{largest, axis});
  return squeezed(out, {axis}, keepdims, stream);
}

array argument_of_all(
    const char* op,
    bool largest,
    const array& a,
    bool keepdims,
    StreamOrDevice s) {
  array out = argument(op, largest, flatten(a, s), 0, false, s);
  return keepdims ? reshape(out, Shape(a.ndim(), 1), s) : out;
}

bool is_half(Dtype t) {
  return t == float16 || t == bfloat16;
}

// Type of means: inexact types stay, others become float32.
Dtype float_type(const array& a) {
  return issubdtype(a.dtype(), inexact) ? a.dtype() : float32;
}

// The same with 16-bit types in float32.
Dtype wide_type(const array& a) {
  Dtype t = float_type(a);
  return is_half(t) ? float32 : t;
}

// The sum in wide_type: without a cast of the elements where the loops add up
// in that type anyway.
array wide_sum(const array& a, const std::vector<int>& axes, Stream s) {
  Dtype wide = wide_type(a);
  bool as_is = reduce_accumulator(ReduceType::sum, a.dtype()) == wide;
  const array x = as_is ? a : astype(a, wide, s);
  return axes.empty() ? astype(x, wide, s)
                      : reduced(x, ReduceType::sum, axes, wide, true, s);
}

array wide_mean(const array& a, const std::vector<int>& axes, Stream s) {
  return divide(
      wide_sum(a, axes, s),
      number_of_elements(
          a, axes, false, wide_type(a) == float64 ? float64 : float32, s),
      s);
}

}  // namespace

// Every reduction comes in three forms.
#define MLX_REDUCTION(name, value)                                        \
  array name(const array& a, bool keepdims, StreamOrDevice s) {           \
    return name(a, all_axes(a), keepdims, s);                             \
  }                                                                       \
  array name(const array& a, int axis, bool keepdims, StreamOrDevice s) { \
    return name(a, std::vector<int>{axis}, keepdims, s);                  \
  }                                                                       \
  array name(                                                             \
      const array& a,                                                     \
      const std::vector<int>& axes,                                       \
      bool keepdims,                                                      \
      StreamOrDevice s) {                                                 \
    return value;                                                         \
  }

MLX_REDUCTION(
    all,
    reduced(
        a, ReduceType::all, strict_axes("all", a, axes), bool_, keepdims, s))
MLX_REDUCTION(
    any,
    reduced(
        a, ReduceType::any, strict_axes("any", a, axes), bool_, keepdims, s))
MLX_REDUCTION(sum, total("sum", ReduceType::sum, a, axes, keepdims, s))
MLX_REDUCTION(prod, total("prod", ReduceType::prod, a, axes, keepdims, s))
MLX_REDUCTION(max, extreme("max", ReduceType::max, a, axes, keepdims, s))
MLX_REDUCTION(min, extreme("min", ReduceType::min, a, axes, keepdims, s))

array mean(const array& a, bool keepdims, StreamOrDevice s) {
  return mean(a, all_axes(a), keepdims, s);
}
array mean(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return mean(a, std::vector<int>{axis}, keepdims, s);
}
array mean(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    StreamOrDevice s) {
  Stream stream = to_stream(s);
  std::vector<int> sorted = plain_axes("mean", a, axes);
  array out = astype(wide_mean(a, sorted, stream), float_type(a), stream);
  return squeezed(out, sorted, keepdims, stream);
}

array count_nonzero(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    StreamOrDevice s) {
  std::vector<int> sorted = strict_axes("count_nonzero", a, axes);
  array nonzero = a.dtype() == bool_ ? a : not_equal(a, array(0, a.dtype()), s);
  return sorted.empty() ? astype(nonzero, int32, s)
                        : sum(nonzero, sorted, keepdims, s);
}
array count_nonzero(const array& a, bool keepdims, StreamOrDevice s) {
  return count_nonzero(a, all_axes(a), keepdims, s);
}
array count_nonzero(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return count_nonzero(a, std::vector<int>{axis}, keepdims, s);
}

array var(const array& a, bool keepdims, int ddof, StreamOrDevice s) {
  return var(a, all_axes(a), keepdims, ddof, s);
}
array var(const array& a, int axis, bool keepdims, int ddof, StreamOrDevice s) {
  return var(a, std::vector<int>{axis}, keepdims, ddof, s);
}
array var(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    int ddof,
    StreamOrDevice s) {
  Stream stream = to_stream(s);
  std::vector<int> sorted = plain_axes("var", a, axes);
  array x = astype(a, wide_type(a), stream);
  array centered = subtract(x, wide_mean(x, sorted, stream), stream);
  // |z|^2 for complex numbers.
  array squares =
      x.dtype() == complex64
          ? real(
                multiply(centered, conjugate(centered, stream), stream), stream)
          : square(centered, stream);
  Dtype count_type = x.dtype() == float64 ? float64 : float32;
  array n = number_of_elements(a, sorted, false, count_type, stream);
  n = maximum(
      subtract(n, array(ddof, count_type), stream),
      array(0, count_type),
      stream);
  array out = divide(wide_sum(squares, sorted, stream), n, stream);
  Dtype result = a.dtype() == complex64 ? float32 : float_type(a);
  return squeezed(astype(out, result, stream), sorted, keepdims, stream);
}

array std(const array& a, bool keepdims, int ddof, StreamOrDevice s) {
  return std(a, all_axes(a), keepdims, ddof, s);
}
array std(const array& a, int axis, bool keepdims, int ddof, StreamOrDevice s) {
  return std(a, std::vector<int>{axis}, keepdims, ddof, s);
}
array std(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    int ddof,
    StreamOrDevice s) {
  return sqrt(var(a, axes, keepdims, ddof, s), s);
}

array median(const array& a, bool keepdims, StreamOrDevice s) {
  return median(a, all_axes(a), keepdims, s);
}
array median(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return median(a, std::vector<int>{axis}, keepdims, s);
}
array median(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    StreamOrDevice s) {
  MLX_POSTPONE("median", median(in[0], axes, keepdims, s), a);
  Stream stream = to_stream(s);
  std::vector<int> sorted = plain_axes("median", a, axes);
  array rows = astype(axes_to_last(a, sorted, stream), float_type(a), stream);
  int n = rows.shape(-1);
  if (n == 0) {
    invalid(
        "median",
        "the axes ",
        axes,
        " of ",
        a.shape(),
        " hold no elements. Expected at least one.");
  }
  rows = sort(rows, -1, stream);
  auto entry = [&](int i) {
    Shape start(rows.ndim(), 0);
    Shape stop = rows.shape();
    start.back() = i;
    stop.back() = i + 1;
    return slice(rows, start, stop, stream);
  };
  array middle = entry(n / 2);
  if (n % 2 == 0) {
    middle = mean(
        concatenate({entry(n / 2 - 1), middle}, -1, stream), -1, true, stream);
  }
  // NaN goes last when sorted, and spoils the median.
  array last = entry(n - 1);
  middle = where(not_equal(last, last, stream), last, middle, stream);
  array out = reshape(middle, reduced_shape(a, sorted), stream);
  return squeezed(out, sorted, keepdims, stream);
}

array argmax(const array& a, bool keepdims, StreamOrDevice s) {
  return argument_of_all("argmax", true, a, keepdims, s);
}
array argmax(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return argument("argmax", true, a, axis, keepdims, s);
}
array argmin(const array& a, bool keepdims, StreamOrDevice s) {
  return argument_of_all("argmin", false, a, keepdims, s);
}
array argmin(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return argument("argmin", false, a, axis, keepdims, s);
}

}  // namespace mlx::core
