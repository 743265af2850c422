// Functions and rules of writing at positions.
#include "ops/scatter.h"

#include <algorithm>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

const char* scatter_name(Accumulate mode) {
  constexpr const char* kNames[] = {
      "scatter", "scatter_add", "scatter_prod", "scatter_max", "scatter_min"};
  return kNames[static_cast<int>(mode)];
}

std::vector<array> index_inputs(const std::vector<array>& inputs) {
  return {inputs.begin() + 1, inputs.end() - 1};
}

array scatter_node(
    const array& src,
    const std::vector<array>& indices,
    const array& updates,
    ScatterParams params,
    Stream s) {
  std::vector<array> inputs = {src};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  inputs.push_back(updates);
  return make_node<Scatter>(
      src.shape(), src.dtype(), std::move(inputs), s, std::move(params));
}

array scatter_at(
    const array& a,
    const std::vector<array>& indices,
    const array& updates,
    const std::vector<int>& axes,
    Accumulate mode,
    Stream s) {
  if (detail::in_shapeless_tracing()) {
    std::vector<array> all = {a};
    all.insert(all.end(), indices.begin(), indices.end());
    all.push_back(updates);
    if (detail::lengths_open(all)) {
      return detail::postpone(
          scatter_name(mode), all, s, [=](const std::vector<array>& in) {
            return std::vector<array>{
                scatter_at(in[0], index_inputs(in), in.back(), axes, mode, s)};
          })[0];
    }
  }
  const char* op = scatter_name(mode);
  std::vector<int> along = index_axes(op, a, indices, axes);
  Shape leading = index_shape(indices);
  Shape wanted = leading;
  // Where there are no positions, slices need not fit either.
  bool nowhere = is_empty(leading);
  bool fits = updates.ndim() == leading.size() + a.ndim();
  for (size_t i = 0; fits && i < updates.ndim(); ++i) {
    ShapeElem n = updates.shape()[i];
    if (i < leading.size()) {
      fits = n == leading[i] || n == 1;
    } else {
      fits = nowhere || n <= a.shape()[i - leading.size()];
      wanted.push_back(n);
    }
  }
  if (!fits) {
    invalid(
        op,
        "updates of shape ",
        updates.shape(),
        " do not fit indices of shape ",
        leading,
        " and an array of shape ",
        a.shape(),
        ". Expected the indices' shape followed by that of a slice.");
  }
  array values = broadcast_to(astype(updates, a.dtype(), s), wanted, s);
  if (values.size() == 0) {
    return a;
  }
  return scatter_node(a, indices, values, {mode, std::move(along)}, s);
}

array scatter_axis(
    const char* op,
    const array& a,
    const array& indices,
    const array& values,
    int axis,
    Accumulate mode,
    Stream s) {
  MLX_POSTPONE(
      op,
      scatter_axis(op, in[0], in[1], in[2], axis, mode, s),
      a,
      indices,
      values);
  array at = indices_along_axis(op, indices, s);
  axis = checked_axis(op, axis, static_cast<int>(a.ndim()));
  if (indices.ndim() != a.ndim()) {
    invalid(
        op,
        "arrays differ in rank: ",
        a.shape(),
        " and ",
        indices.shape(),
        ". Expected equal numbers of axes.");
  }
  Shape shape = a.shape();
  shape[axis] = indices.shape(axis);
  at = broadcast_to(at, shape, s);
  array put = broadcast_to(astype(values, a.dtype(), s), shape, s);
  if (put.size() == 0) {
    return a;
  }
  return make_node<ScatterAxis>(
      a.shape(), a.dtype(), {a, at, put}, s, ScatterAxisParams{mode, axis});
}

int last_index(const std::vector<array>& inputs) {
  return static_cast<int>(inputs.size()) - 2;
}

// The updates' slices as they are in `a`.
array gather_like(
    const array& a,
    const std::vector<array>& indices,
    const std::vector<int>& axes,
    const array& updates,
    Stream s) {
  Shape sizes(updates.shape().end() - a.ndim(), updates.shape().end());
  return gather(a, indices, axes, sizes, s);
}

}  // namespace

#define MLX_SCATTER(name, mode)                                     \
  array name(                                                       \
      const array& a,                                               \
      const std::vector<array>& indices,                            \
      const array& updates,                                         \
      const std::vector<int>& axes,                                 \
      StreamOrDevice s) {                                           \
    return scatter_at(                                              \
        a, indices, updates, axes, Accumulate::mode, to_stream(s)); \
  }
MLX_SCATTER(scatter, none)
MLX_SCATTER(scatter_add, sum)
MLX_SCATTER(scatter_prod, prod)
MLX_SCATTER(scatter_max, max)
MLX_SCATTER(scatter_min, min)
#undef MLX_SCATTER

array put_along_axis(
    const array& a,
    const array& indices,
    const array& values,
    int axis,
    StreamOrDevice s) {
  return scatter_axis(
      "put_along_axis",
      a,
      indices,
      values,
      axis,
      Accumulate::none,
      to_stream(s));
}

array scatter_add_axis(
    const array& a,
    const array& indices,
    const array& values,
    int axis,
    StreamOrDevice s) {
  return scatter_axis(
      "scatter_add_axis",
      a,
      indices,
      values,
      axis,
      Accumulate::sum,
      to_stream(s));
}

// ---- Scatter

std::vector<Shape> Scatter::output_shapes(const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> Scatter::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  Stream s = stream();
  const auto& [mode, axes] = params();
  check_not_indices(scatter_name(mode), argnums, 1, last_index(primals));
  std::vector<array> indices = index_inputs(primals);
  std::vector<array> t = filled_tangents(primals, tangents, argnums, s);
  const array& updates = primals.back();
  if (mode == Accumulate::none || mode == Accumulate::sum) {
    return {scatter_node(t[0], indices, t.back(), params(), s)};
  }
  if (mode == Accumulate::prod) {
    if (argnums.size() > 1 || argnums[0] != 0) {
      invalid(
          "scatter_prod",
          "no derivative with respect to updates. Differentiate with respect "
          "to the source only.");
    }
    return {scatter_node(t[0], indices, updates, params(), s)};
  }
  // The sum over all that reach the extreme value, as in vjp.
  array out = scatter_node(primals[0], indices, updates, params(), s);
  array at = gather_like(out, indices, axes, updates, s);
  array zero(0, t[0].dtype());
  return {scatter_node(
      where(equal(out, primals[0], s), t[0], zero, s),
      indices,
      where(equal(at, updates, s), t.back(), zero, s),
      {Accumulate::sum, axes},
      s)};
}

// Of equal extremes each takes the whole cotangent.
std::vector<array> Scatter::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>& outputs) {
  Stream s = stream();
  const auto& [mode, axes] = params();
  check_not_indices(scatter_name(mode), argnums, 1, last_index(primals));
  std::vector<array> indices = index_inputs(primals);
  const array& updates = primals.back();
  const array& c = cotangents[0];
  array zero(0, c.dtype());
  std::vector<array> grads;
  for (int argnum : argnums) {
    bool of_source = argnum == 0;
    array inner = of_source ? c : gather_like(c, indices, axes, updates, s);
    if (mode == Accumulate::none && of_source) {
      array blank = broadcast_to(zero, updates.shape(), s);
      grads.push_back(scatter_node(c, indices, blank, params(), s));
    } else if (mode == Accumulate::none || mode == Accumulate::sum) {
      grads.push_back(inner);
    } else if (mode == Accumulate::prod) {
      if (!of_source) {
        invalid(
            "scatter_prod",
            "no derivative with respect to updates. Differentiate with respect "
            "to the source only.");
      }
      grads.push_back(
          scatter_node(c, indices, conjugate(updates, s), params(), s));
    } else {
      array wins = of_source
                       ? equal(outputs[0], primals[0], s)
                       : equal(
                             gather_like(outputs[0], indices, axes, updates, s),
                             updates,
                             s);
      grads.push_back(where(wins, inner, zero, s));
    }
  }
  return grads;
}

Batched Scatter::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  ShapeElem batch = batch_size(inputs, axes);
  array src = with_batch(inputs[0], axes[0], batch, s);
  array updates = with_batch(inputs.back(), axes.back(), batch, s);
  int index_ndim = static_cast<int>(inputs.back().ndim()) - (axes.back() >= 0) -
                   static_cast<int>(src.ndim()) + 1;
  bool indices_have_batch = false;
  std::vector<array> indices;
  for (size_t i = 1; i + 1 < inputs.size(); ++i) {
    indices_have_batch = indices_have_batch || axes[i] >= 0;
    indices.push_back(batch_to_front(inputs[i], axes[i], index_ndim, s));
  }
  ScatterParams batched = params();
  batched.axes = shifted(batched.axes);
  if (!indices_have_batch) {
    // The batch axis becomes the first of the slices.
    updates = moveaxis(updates, 0, index_ndim, s);
  } else {
    indices.push_back(batch_positions(batch, index_ndim, s));
    batched.axes.push_back(0);
    updates = expand_dims(updates, index_ndim + 1, s);
  }
  return {{scatter_node(src, indices, updates, batched, s)}, {0}};
}

// ---- ScatterAxis

std::vector<Shape> ScatterAxis::output_shapes(
    const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> ScatterAxis::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  const auto& [mode, axis] = params();
  const char* op = "put_along_axis";
  check_not_indices(op, argnums, 1, 1);
  std::vector<array> t = filled_tangents(primals, tangents, argnums, stream());
  return {scatter_axis(op, t[0], primals[1], t[2], axis, mode, stream())};
}

std::vector<array> ScatterAxis::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  const auto& [mode, axis] = params();
  const char* op = "put_along_axis";
  check_not_indices(op, argnums, 1, 1);
  const array& c = cotangents[0];
  std::vector<array> grads;
  for (int argnum : argnums) {
    if (argnum == 2) {
      grads.push_back(take_along_axis(c, primals[1], axis, stream()));
    } else if (mode == Accumulate::sum) {
      grads.push_back(c);
    } else {
      array zero(0, c.dtype());
      grads.push_back(
          scatter_axis(op, c, primals[1], zero, axis, mode, stream()));
    }
  }
  return grads;
}

Batched ScatterAxis::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  const auto& [mode, axis] = params();
  std::vector<array> in = all_batched(inputs, axes, stream());
  return {
      {scatter_axis(
          "put_along_axis", in[0], in[1], in[2], axis + 1, mode, stream())},
      {0}};
}

}  // namespace mlx::core
