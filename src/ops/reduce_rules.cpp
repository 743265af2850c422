// Derivatives, batch rules and shapes of the reductions.
#include "graph/stream_scope.h"
#include "mlx/ops.h"
#include "ops/reduce.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

// Same reduction of another array.
array apply(Reduce& op, const array& x, const ReduceParams& params) {
  auto again = std::make_shared<Reduce>(op.stream(), params);
  return array(again->output_shapes({x})[0], params.dtype, again, {x});
}

// The factors by which the product of a row changes with each element: the
// products of all others, by running products from both ends, so that zeros
// need no division.
array products_of_others(const array& x, const ReduceParams& params) {
  Stream s = to_stream({});
  array rows = axes_to_last(x, params.axes, s);
  array others =
      multiply(cumprod(rows, -1, false, false), cumprod(rows, -1, true, false));
  return axes_from_last(others, params.axes, x.shape(), s);
}

// 1 / (number of extremes) at the extremes, 0 elsewhere: elements that tie
// share the derivative.
array share_of_extremes(
    const array& x, const array& y, const ReduceParams& params) {
  array hit = equal(x, y);
  array n = sum(hit, params.axes, true);
  return divide(astype(hit, x.dtype()), astype(n, x.dtype()));
}

// dy/dx, to be multiplied by a tangent or cotangent.
array factors(Reduce& op, const array& x, const array& y) {
  return op.params().type == ReduceType::prod
             ? products_of_others(astype(x, op.params().dtype), op.params())
             : share_of_extremes(x, y, op.params());
}

// Functions check this for the shapes that they are called with; replays of a
// trace may come with others.
[[noreturn]] void refuse_empty(const char* op, const Shape& shape) {
  invalid(
      op,
      "no element to choose from: ",
      shape,
      ". Expected at least one along the reduced axes.");
}

bool is_logic(ReduceType type) {
  return type == ReduceType::all || type == ReduceType::any;
}

}  // namespace

std::vector<Shape> Reduce::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  bool needs_some =
      params().type == ReduceType::max || params().type == ReduceType::min;
  for (int axis : params().axes) {
    if (needs_some && shape[axis] == 0) {
      refuse_empty("reduce", shape);
    }
    shape[axis] = 1;
  }
  return {shape};
}

std::vector<array> Reduce::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>&) {
  detail::StreamScope scope(stream());
  const array& x = primals[0];
  if (params().type == ReduceType::sum) {
    return {apply(*this, tangents[0], params())};
  }
  array y = apply(*this, x, params());
  if (is_logic(params().type)) {
    return {zeros(y.shape(), tangents[0].dtype())};
  }
  array changes = multiply(tangents[0], factors(*this, x, y));
  return {astype(sum(changes, params().axes, true), params().dtype)};
}

std::vector<array> Reduce::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>& outputs) {
  detail::StreamScope scope(stream());
  const array& x = primals[0];
  if (is_logic(params().type)) {
    return {zeros_like(x)};
  }
  array g = cotangents[0];
  if (params().type != ReduceType::sum) {
    array f = factors(*this, x, outputs[0]);
    g = multiply(g, f.dtype() == complex64 ? conjugate(f) : f);
  }
  return {broadcast_like(astype(g, x.dtype()), x, stream())};
}

Batched Reduce::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  ReduceParams batched = params();
  batched.axes = shifted(batched.axes);
  return {
      {apply(*this, batch_to_front(inputs[0], axes[0], stream()), batched)},
      {0}};
}

std::vector<Shape> ArgReduce::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  if (shape[params().axis] == 0) {
    refuse_empty("argreduce", shape);
  }
  shape[params().axis] = 1;
  return {shape};
}

// Positions do not change with the values.
std::vector<array> ArgReduce::jvp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&) {
  return {zeros(output_shapes(primals)[0], uint32, stream())};
}

std::vector<array> ArgReduce::vjp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {zeros_like(primals[0], stream())};
}

Batched ArgReduce::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  ArgReduceParams batched{params().largest, params().axis + 1};
  auto op = std::make_shared<ArgReduce>(stream(), batched);
  return {{array(op->output_shapes({x})[0], uint32, op, {x})}, {0}};
}

}  // namespace mlx::core
