// cumsum, cumprod, cummax, cummin and logcumsumexp with their rules.
#include "ops/scan.h"

#include <limits>

#include "graph/postponed.h"
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

array diff(const array& a, int n, int axis, StreamOrDevice s) {
  MLX_POSTPONE("diff", diff(in[0], n, axis, s), a);
  axis = checked_axis("diff", axis, static_cast<int>(a.ndim()));
  if (n < 0) {
    invalid("diff", "negative number of times: ", n, ".");
  }
  array out = a;
  for (; n > 0 && out.shape(axis) > 0; --n) {
    Shape start(a.ndim(), 0);
    Shape stop = out.shape();
    start[axis] = 1;
    array later = slice(out, start, stop, s);
    stop[axis] -= 1;
    out = subtract(later, slice(out, Shape(a.ndim(), 0), stop, s), s);
  }
  return out;
}

// ---- rules

namespace {

// Where elements are zero, and where one is the first zero of its row.
std::pair<array, array> zeros_of_rows(const array& x, const ScanParams& p) {
  array is_zero = equal(x, array(0, x.dtype()));
  array zeros_so_far = cumsum(is_zero, p.axis, p.reverse);
  return {is_zero, logical_and(is_zero, equal(zeros_so_far, array(1)))};
}

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
  auto [is_zero, is_first] = zeros_of_rows(x, p);
  array others =
      cumprod(where(is_first, one, x), p.axis, p.reverse, p.inclusive);
  array safe_x = where(is_zero, one, x);
  array regular =
      where(is_zero, zero, divide(later_sum(multiply(g, y)), safe_x));
  return where(is_first, later_sum(multiply(g, others)), regular);
}

// Forwards: each result changes by result / element for every earlier element;
// with one zero so far only by that one's tangent, with more not at all.
array cumprod_tangent(
    const array& x, const array& y, const array& t, const ScanParams& p) {
  auto sum_so_far = [&](const array& terms) {
    return cumsum(terms, p.axis, p.reverse, p.inclusive);
  };
  auto [is_zero, is_first] = zeros_of_rows(x, p);
  array zero(0, x.dtype());
  array one(1, x.dtype());
  array others =
      cumprod(where(is_first, one, x), p.axis, p.reverse, p.inclusive);
  array regular = multiply(
      y, sum_so_far(where(is_zero, zero, divide(t, where(is_zero, one, x)))));
  return add(regular, multiply(others, sum_so_far(where(is_first, t, zero))));
}

// For each inclusive result where along the axis it was taken from: the latest
// element that equals it.
array extreme_positions(const array& x, const ScanParams& p) {
  int n = x.shape(p.axis);
  Shape along(x.ndim(), 1);
  along[p.axis] = n;
  array positions = reshape(arange(n, int32), along);
  array y = p.type == ScanType::max ? cummax(x, p.axis, p.reverse)
                                    : cummin(x, p.axis, p.reverse);
  array is_new = equal(x, y);
  // Positions do not change with the values.
  return stop_gradient(
      p.reverse ? cummin(where(is_new, positions, array(n - 1)), p.axis, true)
                : cummax(where(is_new, positions, array(0)), p.axis));
}

// Along the axis by one step against the direction of the scan (or with it),
// zeros entering at the end.
array shifted_by_one(const array& a, const ScanParams& p, bool against) {
  int n = a.shape(p.axis);
  bool up = p.reverse == against;
  Shape along(a.ndim(), 1);
  along[p.axis] = n;
  array end = equal(reshape(arange(n, int32), along), array(up ? 0 : n - 1));
  return where(end, array(0, a.dtype()), roll(a, up ? 1 : -1, p.axis));
}

// The cotangent goes to the element that a result was taken from. Exclusive
// results were taken one step earlier.
array extreme_gradient(const array& x, array g, const ScanParams& p) {
  if (!p.inclusive) {
    g = shifted_by_one(g, p, true);
  }
  return scatter_add_axis(zeros_like(x), extreme_positions(x, p), g, p.axis);
}

array extreme_tangent(const array& x, const array& t, const ScanParams& p) {
  array taken = take_along_axis(t, extreme_positions(x, p), p.axis);
  return p.inclusive ? taken : shifted_by_one(taken, p, false);
}

// sum over the scanned of values * exp(shift), in which exp alone may
// overflow: positive and negative values by logcumsumexp, then rescaled.
// Complex values have a logarithm of their own.
array scaled_sums(
    const array& values,
    const array& shift,
    const array& rescale,
    int axis,
    bool reverse,
    bool inclusive) {
  if (values.dtype() == complex64) {
    array sums =
        logcumsumexp(add(log(values), shift), axis, reverse, inclusive);
    return exp(add(sums, rescale));
  }
  array zero(0, values.dtype());
  array one(1, values.dtype());
  array none(-std::numeric_limits<float>::infinity(), values.dtype());
  // What is left out is kept from logarithms and exponentials, whose infinite
  // slopes would make NaN of the zeros that second derivatives send there.
  auto part = [&](const array& v) {
    array counts = greater(v, zero);
    array logs = where(counts, add(log(where(counts, v, one)), shift), none);
    array sums = logcumsumexp(logs, axis, reverse, inclusive);
    array is_empty = equal(sums, none);
    array exponent =
        add(where(is_empty, zero, sums), where(is_empty, zero, rescale));
    return where(is_empty, zero, exp(exponent));
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
    const std::vector<int>&) {
  detail::StreamScope scope(stream());
  const array& x = primals[0];
  const array& t = tangents[0];
  const auto& [type, axis, reverse, inclusive] = params();
  switch (type) {
    case ScanType::sum:
      return {cumsum(t, axis, reverse, inclusive)};
    case ScanType::prod:
      return {cumprod_tangent(
          x, cumprod(x, axis, reverse, inclusive), t, params())};
    case ScanType::max:
    case ScanType::min:
      return {extreme_tangent(x, t, params())};
    case ScanType::logaddexp:
      break;
  }
  array y = logcumsumexp(x, axis, reverse, inclusive);
  return {scaled_sums(t, x, negative(y), axis, reverse, inclusive)};
}

std::vector<array> Scan::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>& outputs) {
  detail::StreamScope scope(stream());
  const array& x = primals[0];
  const array& y = outputs[0];
  const auto& [type, axis, reverse, inclusive] = params();
  // Cotangents take the adjoint: that of complex numbers is conjugated.
  bool is_complex = x.dtype() == complex64;
  auto adjoint = [&](auto rule) {
    array g = is_complex ? conjugate(cotangents[0]) : cotangents[0];
    array result = rule(g);
    return std::vector<array>{is_complex ? conjugate(result) : result};
  };
  switch (type) {
    case ScanType::sum:
      return {cumsum(cotangents[0], axis, !reverse, inclusive)};
    case ScanType::prod:
      return adjoint(
          [&](const array& g) { return cumprod_gradient(x, y, g, params()); });
    case ScanType::max:
    case ScanType::min:
      return {extreme_gradient(x, cotangents[0], params())};
    case ScanType::logaddexp:
      break;
  }
  return adjoint([&](const array& g) {
    return scaled_sums(g, negative(y), x, axis, !reverse, inclusive);
  });
}

Batched Scan::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  ScanParams batched = params();
  batched.axis += 1;
  return {{make_node<Scan>(x.shape(), x.dtype(), {x}, stream(), batched)}, {0}};
}

}  // namespace mlx::core
