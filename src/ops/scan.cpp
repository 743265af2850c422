// cumsum, cumprod, cummax, cummin and logcumsumexp with their rules.
#include "ops/scan.h"

#include "graph/stream_scope.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

array scan(
    const char* op,
    ScanType type,
    const array& a,
    int axis,
    bool reverse,
    bool inclusive,
    StreamOrDevice s) {
  axis = checked_axis(op, axis, static_cast<int>(a.ndim()));
  return make_node<Scan>(
      a.shape(),
      a.dtype(),
      {a},
      to_stream(s),
      ScanParams{type, axis, reverse, inclusive});
}

array as_float(const array& a, StreamOrDevice s) {
  return issubdtype(a.dtype(), inexact) ? a : astype(a, float32, s);
}

}  // namespace

array cumsum(
    const array& a,
    int axis,
    bool reverse,
    bool inclusive,
    std::optional<Dtype> dtype,
    StreamOrDevice s) {
  Dtype sum_dtype = dtype.value_or(a.dtype() == bool_ ? int32 : a.dtype());
  array x = astype(a, sum_dtype, s);
  return scan("cumsum", ScanType::sum, x, axis, reverse, inclusive, s);
}
array cumsum(
    const array& a,
    bool reverse,
    bool inclusive,
    std::optional<Dtype> dtype,
    StreamOrDevice s) {
  return cumsum(flatten(a, s), 0, reverse, inclusive, dtype, s);
}

array cumprod(
    const array& a,
    int axis,
    bool reverse,
    bool inclusive,
    std::optional<Dtype> dtype,
    StreamOrDevice s) {
  array x = astype(a, dtype.value_or(a.dtype()), s);
  return scan("cumprod", ScanType::prod, x, axis, reverse, inclusive, s);
}
array cumprod(
    const array& a,
    bool reverse,
    bool inclusive,
    std::optional<Dtype> dtype,
    StreamOrDevice s) {
  return cumprod(flatten(a, s), 0, reverse, inclusive, dtype, s);
}

array cummax(
    const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return scan("cummax", ScanType::max, a, axis, reverse, inclusive, s);
}
array cummax(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cummax(flatten(a, s), 0, reverse, inclusive, s);
}

array cummin(
    const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return scan("cummin", ScanType::min, a, axis, reverse, inclusive, s);
}
array cummin(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cummin(flatten(a, s), 0, reverse, inclusive, s);
}

array logcumsumexp(
    const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return scan(
      "logcumsumexp",
      ScanType::logaddexp,
      as_float(a, s),
      axis,
      reverse,
      inclusive,
      s);
}
array logcumsumexp(
    const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return logcumsumexp(flatten(a, s), 0, reverse, inclusive, s);
}

// ---- rules

namespace {

// Each element's product appears in all later results, as result / element.
// The first zero of a row makes all later results zero: its own derivative
// needs the products without it, and those of later elements are zero.
array cumprod_gradient(
    const array& x, const array& y, const array& g, const ScanParams& p) {
  auto later_sum = [&](const array& terms) {
    return cumsum(terms, p.axis, !p.reverse, p.inclusive);
  };
  array zero(0, x.dtype());
  array one(1, x.dtype());
  array is_zero = equal(x, zero);
  array zeros_so_far = cumsum(is_zero, p.axis, p.reverse);
  array is_first = logical_and(is_zero, equal(zeros_so_far, array(1)));
  array others =
      cumprod(where(is_first, one, x), p.axis, p.reverse, p.inclusive);
  array safe_x = where(is_zero, one, x);
  array regular =
      where(is_zero, zero, divide(later_sum(multiply(g, y)), safe_x));
  return where(is_first, later_sum(multiply(g, others)), regular);
}

// The cotangent goes to the element that a result was taken from: the latest
// one that equals it.
array extreme_gradient(
    const array& x, const array& y, array g, const ScanParams& p) {
  int axis = p.axis;
  int n = x.shape(axis);
  Shape along(x.ndim(), 1);
  along[axis] = n;
  array positions = reshape(arange(n, int32), along);
  array inclusive_y = y;
  if (!p.inclusive) {
    // A result was taken one step earlier: move the cotangents there.
    inclusive_y = p.type == ScanType::max ? cummax(x, axis, p.reverse)
                                          : cummin(x, axis, p.reverse);
    array moved = roll(g, p.reverse ? 1 : -1, axis);
    array end = equal(positions, array(p.reverse ? 0 : n - 1));
    g = where(end, array(0, g.dtype()), moved);
  }
  array is_new = equal(x, inclusive_y);
  array from = p.reverse
                   ? cummin(where(is_new, positions, array(n - 1)), axis, true)
                   : cummax(where(is_new, positions, array(0)), axis);
  return scatter_add_axis(zeros_like(x), from, g, axis);
}

// sum over the scanned of values * exp(shift), in which exp alone may
// overflow: positive and negative values by logcumsumexp, then rescaled.
array scaled_sums(
    const array& values,
    const array& shift,
    const array& rescale,
    int axis,
    bool reverse,
    bool inclusive) {
  array zero(0, values.dtype());
  auto part = [&](const array& v) {
    array sums = logcumsumexp(
        add(log(maximum(v, zero)), shift), axis, reverse, inclusive);
    return exp(add(sums, rescale));
  };
  return subtract(part(values), part(negative(values)));
}

}  // namespace

std::vector<Shape> Scan::output_shapes(const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> Scan::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  detail::StreamScope scope(stream());
  const auto& [type, axis, reverse, inclusive] = params();
  if (type == ScanType::sum) {
    return {cumsum(tangents[0], axis, reverse, inclusive)};
  }
  if (type == ScanType::logaddexp && primals[0].dtype() != complex64) {
    const array& x = primals[0];
    array y = logcumsumexp(x, axis, reverse, inclusive);
    return {scaled_sums(tangents[0], x, negative(y), axis, reverse, inclusive)};
  }
  return Primitive::jvp(primals, tangents, argnums);
}

std::vector<array> Scan::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>& outputs) {
  detail::StreamScope scope(stream());
  const array& x = primals[0];
  const array& g = cotangents[0];
  const auto& [type, axis, reverse, inclusive] = params();
  switch (type) {
    case ScanType::sum:
      return {cumsum(g, axis, !reverse, inclusive)};
    case ScanType::prod:
      return {cumprod_gradient(x, outputs[0], g, params())};
    case ScanType::max:
    case ScanType::min:
      return {extreme_gradient(x, outputs[0], g, params())};
    default:
      break;
  }
  if (x.dtype() == complex64) {
    return Primitive::vjp(primals, cotangents, argnums, outputs);
  }
  return {scaled_sums(g, negative(outputs[0]), x, axis, !reverse, inclusive)};
}

Batched Scan::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  ScanParams batched = params();
  batched.axis += 1;
  return {{make_node<Scan>(x.shape(), x.dtype(), {x}, stream(), batched)}, {0}};
}

}  // namespace mlx::core
