// softmax and logsumexp: over the last axis fused, over others by moving them
// there; complex numbers are composed.
#include "ops/softmax.h"

#include <algorithm>

#include "graph/postponed.h"
#include "graph/stream_scope.h"
#include "mlx/ops.h"
#include "ops/reduce.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

Dtype float_type(const array& a) {
  return issubdtype(a.dtype(), inexact) ? a.dtype() : float32;
}

array wide(const array& a) {
  bool is_half = a.dtype() == float16 || a.dtype() == bfloat16;
  return is_half ? astype(a, float32) : a;
}

// `x` has at least one axis.
array softmax_of_last(const array& x, Stream s) {
  if (x.dtype() == complex64) {
    array e = exp(subtract(x, max(x, -1, true, s), s), s);
    return divide(e, sum(e, -1, true, s), s);
  }
  return make_node<Softmax>(x.shape(), x.dtype(), {x}, s);
}

array logsumexp_of_last(const array& x, Stream s) {
  if (x.dtype() == complex64) {
    array m = stop_gradient(max(x, -1, true, s), s);
    array e = exp(subtract(x, m, s), s);
    return add(log(sum(e, -1, true, s), s), m, s);
  }
  Shape shape = x.shape();
  shape.back() = 1;
  return make_node<LogSumExp>(shape, x.dtype(), {x}, s);
}

bool is_last(const std::vector<int>& axes, const array& a) {
  return axes.size() == 1 && axes[0] + 1 == static_cast<int>(a.ndim());
}

}  // namespace

array softmax(
    const array& a,
    const std::vector<int>& axes,
    bool precise,
    StreamOrDevice s) {
  MLX_POSTPONE("softmax", softmax(in[0], axes, precise, s), a);
  Stream stream = to_stream(s);
  std::vector<int> sorted =
      reduction_axes("softmax", axes, static_cast<int>(a.ndim()), checked_axis);
  array x = astype(a, float_type(a), stream);
  if (a.size() == 0) {
    return x;
  }
  if (is_last(sorted, a)) {
    return softmax_of_last(x, stream);
  }
  array rows = softmax_of_last(axes_to_last(x, sorted, stream), stream);
  return axes_from_last(rows, sorted, a.shape(), stream);
}

array softmax(const array& a, bool precise, StreamOrDevice s) {
  return softmax(a, all_axes(a), precise, s);
}

array logsumexp(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims,
    StreamOrDevice s) {
  MLX_POSTPONE("logsumexp", logsumexp(in[0], axes, keepdims, s), a);
  Stream stream = to_stream(s);
  std::vector<int> sorted = reduction_axes(
      "logsumexp", axes, static_cast<int>(a.ndim()), checked_axis);
  if (a.size() == 0) {
    invalid(
        "logsumexp",
        "the array is empty: ",
        a.shape(),
        ". Expected at least one element.");
  }
  array x = astype(a, float_type(a), stream);
  array out = is_last(sorted, a)
                  ? logsumexp_of_last(x, stream)
                  : logsumexp_of_last(axes_to_last(x, sorted, stream), stream);
  Shape shape;
  for (int i = 0; i < static_cast<int>(a.ndim()); ++i) {
    bool is_reduced = std::binary_search(sorted.begin(), sorted.end(), i);
    if (keepdims || !is_reduced) {
      shape.push_back(is_reduced ? 1 : a.shape(i));
    }
  }
  return reshape(out, shape, stream);
}

array logsumexp(const array& a, bool keepdims, StreamOrDevice s) {
  return logsumexp(a, all_axes(a), keepdims, s);
}

array logsumexp(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return logsumexp(a, std::vector<int>{axis}, keepdims, s);
}

// ---- Softmax: dy = y * (dx - sum(y * dx)), and the same backwards

namespace {

array softmax_change(const array& y, const array& change) {
  array wide_y = wide(y);
  array product = multiply(wide_y, wide(change));
  array out = subtract(product, multiply(wide_y, sum(product, -1, true)));
  return astype(out, y.dtype());
}

}  // namespace

array Softmax::compose(const std::vector<array>& inputs) const {
  Dtype dtype = inputs[0].dtype();
  Stream s = const_cast<Softmax*>(this)->stream();
  array x = astype(inputs[0], dtype == float64 ? float64 : float32, s);
  array e = exp(subtract(x, max(x, -1, true, s), s), s);
  return astype(divide(e, sum(e, -1, true, s), s), dtype, s);
}

std::vector<Shape> Softmax::output_shapes(const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> Softmax::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>&) {
  detail::StreamScope scope(stream());
  return {softmax_change(softmax_of_last(primals[0], stream()), tangents[0])};
}

std::vector<array> Softmax::vjp(
    const std::vector<array>&,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>& outputs) {
  detail::StreamScope scope(stream());
  return {softmax_change(outputs[0], cotangents[0])};
}

Batched Softmax::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  return {{softmax_of_last(x, stream())}, {0}};
}

// ---- LogSumExp: the gradient is the softmax

std::vector<Shape> LogSumExp::output_shapes(const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  shape.back() = 1;
  return {shape};
}

std::vector<array> LogSumExp::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>&) {
  detail::StreamScope scope(stream());
  array share = softmax_of_last(wide(primals[0]), stream());
  array out = sum(multiply(share, wide(tangents[0])), -1, true);
  return {astype(out, primals[0].dtype())};
}

std::vector<array> LogSumExp::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>&,
    const std::vector<array>&) {
  detail::StreamScope scope(stream());
  array share = softmax_of_last(wide(primals[0]), stream());
  array out = multiply(share, wide(cotangents[0]));
  return {astype(out, primals[0].dtype())};
}

Batched LogSumExp::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array x = batch_to_front(inputs[0], axes[0], stream());
  return {{logsumexp_of_last(x, stream())}, {0}};
}

}  // namespace mlx::core
