// Sorting functions and their rules.
#include "ops/sort.h"

#include "graph/postponed.h"
#include "graph/stream_scope.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

using Batched = std::pair<std::vector<array>, std::vector<int>>;

int ndim_of(const array& a) {
  return static_cast<int>(a.ndim());
}

template <typename Op>
array sort_node(const array& a, int axis, Dtype dtype, Stream s) {
  return make_node<Op>(a.shape(), dtype, {a}, s, AxisParams{axis});
}

// The batch in front moves the sorted axis by one.
template <typename Op>
Batched batched_sort(
    const array& a, int batch_axis, int axis, Dtype dtype, Stream s) {
  array x = batch_to_front(a, batch_axis, s);
  return {{sort_node<Op>(x, axis + 1, dtype, s)}, {0}};
}

// The order does not change with the values: no derivative passes through it.
array order_of(const array& x, int axis, Stream s) {
  return stop_gradient(argsort(x, axis, s), s);
}

int checked_kth(const char* op, const array& a, int kth, int axis) {
  int n = a.shape(axis);
  int found = kth < 0 ? kth + n : kth;
  if (found < 0 || found >= n) {
    invalid(op, "kth out of range: ", kth, " for an axis of length ", n, ".");
  }
  return found;
}

}  // namespace

std::vector<Shape> Sort::output_shapes(const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> Sort::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>&) {
  array order = order_of(primals[0], params().axis, stream());
  return {take_along_axis(tangents[0], order, params().axis, stream())};
}

std::vector<array> Sort::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  array order = order_of(primals[0], params().axis, stream());
  return {put_along_axis(
      zeros_like(primals[0], stream()),
      order,
      cotangents[0],
      params().axis,
      stream())};
}

Batched Sort::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  return batched_sort<Sort>(
      inputs[0], axes[0], params().axis, inputs[0].dtype(), stream());
}

std::vector<Shape> ArgSort::output_shapes(const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> ArgSort::jvp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&) {
  return {zeros_like(primals[0], uint32, stream())};
}

std::vector<array> ArgSort::vjp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&,
    const std::vector<array>&) {
  return {zeros_like(primals[0], stream())};
}

Batched ArgSort::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  return batched_sort<ArgSort>(
      inputs[0], axes[0], params().axis, uint32, stream());
}

std::vector<Shape> SearchSorted::output_shapes(
    const std::vector<array>& inputs) {
  return {inputs[1].shape()};
}

std::vector<array> SearchSorted::jvp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>&) {
  return {zeros_like(primals[1], uint32, stream())};
}

std::vector<array> SearchSorted::vjp(
    const std::vector<array>& primals,
    const std::vector<array>&,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  std::vector<array> grads;
  for (int argnum : argnums) {
    grads.push_back(zeros_like(primals[argnum], stream()));
  }
  return grads;
}

Batched SearchSorted::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  if (axes[0] >= 0) {
    invalid(
        "searchsorted",
        "vmap over the sorted sequence. Expected one sequence for all "
        "entries.");
  }
  return {
      {array(
          inputs[1].shape(),
          uint32,
          std::make_shared<SearchSorted>(stream(), params()),
          inputs)},
      {axes[1]}};
}

// ---- functions

array sort(const array& a, int axis, StreamOrDevice s) {
  axis = checked_axis("sort", axis, ndim_of(a));
  return sort_node<Sort>(a, axis, a.dtype(), to_stream(s));
}

array sort(const array& a, StreamOrDevice s) {
  return sort(flatten(a, s), 0, s);
}

array argsort(const array& a, int axis, StreamOrDevice s) {
  axis = checked_axis("argsort", axis, ndim_of(a));
  return sort_node<ArgSort>(a, axis, uint32, to_stream(s));
}

array argsort(const array& a, StreamOrDevice s) {
  return argsort(flatten(a, s), 0, s);
}

// A sorted array is partitioned at every place.
array partition(const array& a, int kth, int axis, StreamOrDevice s) {
  MLX_POSTPONE("partition", partition(in[0], kth, axis, s), a);
  axis = checked_axis("partition", axis, ndim_of(a));
  checked_kth("partition", a, kth, axis);
  return sort(a, axis, s);
}

array partition(const array& a, int kth, StreamOrDevice s) {
  return partition(flatten(a, s), kth, 0, s);
}

array argpartition(const array& a, int kth, int axis, StreamOrDevice s) {
  MLX_POSTPONE("argpartition", argpartition(in[0], kth, axis, s), a);
  axis = checked_axis("argpartition", axis, ndim_of(a));
  checked_kth("argpartition", a, kth, axis);
  return argsort(a, axis, s);
}

array argpartition(const array& a, int kth, StreamOrDevice s) {
  return argpartition(flatten(a, s), kth, 0, s);
}

array topk(const array& a, int k, int axis, StreamOrDevice s) {
  MLX_POSTPONE("topk", topk(in[0], k, axis, s), a);
  axis = checked_axis("topk", axis, ndim_of(a));
  int n = a.shape(axis);
  if (k < 0 || k > n) {
    invalid("topk", "k out of range: ", k, " for an axis of length ", n, ".");
  }
  Shape start(a.ndim(), 0);
  start[axis] = n - k;
  return slice(sort(a, axis, s), start, a.shape(), s);
}

array topk(const array& a, int k, StreamOrDevice s) {
  return topk(flatten(a, s), k, 0, s);
}

array searchsorted(
    const array& sorted_sequence,
    const array& values,
    const std::string& side,
    StreamOrDevice s) {
  if (side != "left" && side != "right") {
    invalid(
        "searchsorted", "unknown side: ", side, ". Expected left or right.");
  }
  if (sorted_sequence.ndim() != 1) {
    invalid(
        "searchsorted",
        "the sequence has ",
        sorted_sequence.ndim(),
        " dimensions. Expected 1.");
  }
  Dtype dtype = result_type(sorted_sequence, values);
  return make_node<SearchSorted>(
      values.shape(),
      uint32,
      {astype(sorted_sequence, dtype, s), astype(values, dtype, s)},
      to_stream(s),
      SearchSortedParams{side == "right"});
}

}  // namespace mlx::core
