// Functions and rules of writing slices.
#include "ops/slice_update.h"

#include <algorithm>

#include "graph/postponed.h"
#include "graph/stream_scope.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core {

namespace {

array update_slice(
    const array& src,
    const array& update,
    const Shape& start,
    const Shape& stop,
    const Shape& strides,
    Accumulate mode,
    StreamOrDevice s) {
  MLX_POSTPONE(
      "slice_update",
      update_slice(in[0], in[1], start, stop, strides, mode, s),
      src,
      update);
  return slice_update(
      src,
      update,
      normalized_slice("slice_update", src.shape(), start, stop, strides),
      mode,
      to_stream(s));
}

}  // namespace

// Indexing is called so often that it counts: shapes are found here rather
// than by the functions for each step.
array take_slice(
    const array& a,
    const SliceParams& slice,
    const std::vector<int>& dropped,
    Stream s) {
  bool whole = is_whole(slice, a.shape());
  array part =
      whole ? a
            : make_node<Slice>(slice_shape(slice), a.dtype(), {a}, s, slice);
  if (dropped.empty()) {
    return part;
  }
  Shape shape;
  size_t next = 0;
  for (size_t i = 0; i < part.ndim(); ++i) {
    if (next < dropped.size() && dropped[next] == static_cast<int>(i)) {
      ++next;
    } else {
      shape.push_back(part.shape()[i]);
    }
  }
  return make_node<Squeeze>(
      std::move(shape), a.dtype(), {part}, s, AxesParams{dropped});
}

array slice_update(
    const array& src,
    const array& update,
    SliceParams slice,
    Accumulate mode,
    Stream s) {
  Shape shape = slice_shape(slice);
  array values =
      broadcast_to(astype(update, src.dtype(), s), std::move(shape), s);
  if (values.size() == 0) {
    return src;
  }
  if (mode == Accumulate::none && is_whole(slice, src.shape())) {
    return values;
  }
  return make_node<SliceUpdate>(
      src.shape(),
      src.dtype(),
      {src, std::move(values)},
      s,
      SliceUpdateParams{mode, std::move(slice)});
}

// The public functions, one pair for each way values meet.
#define MLX_SLICE_UPDATE(name, mode)                                          \
  array name(                                                                 \
      const array& src,                                                       \
      const array& update,                                                    \
      Shape start,                                                            \
      Shape stop,                                                             \
      Shape strides,                                                          \
      StreamOrDevice s) {                                                     \
    return update_slice(                                                      \
        src, update, start, stop, strides, Accumulate::mode, s);              \
  }                                                                           \
  array name(                                                                 \
      const array& src,                                                       \
      const array& update,                                                    \
      Shape start,                                                            \
      Shape stop,                                                             \
      StreamOrDevice s) {                                                     \
    return update_slice(                                                      \
        src, update, start, stop, Shape(src.ndim(), 1), Accumulate::mode, s); \
  }
MLX_SLICE_UPDATE(slice_update, none)
MLX_SLICE_UPDATE(slice_update_add, sum)
MLX_SLICE_UPDATE(slice_update_prod, prod)
MLX_SLICE_UPDATE(slice_update_max, max)
MLX_SLICE_UPDATE(slice_update_min, min)
#undef MLX_SLICE_UPDATE

// ---- SliceUpdate

std::vector<Shape> SliceUpdate::output_shapes(
    const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> SliceUpdate::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  Stream s = stream();
  const auto& [mode, slice] = params();
  std::vector<array> t = filled_tangents(primals, tangents, argnums, s);
  if (mode == Accumulate::none || mode == Accumulate::sum) {
    return {slice_update(t[0], t[1], slice, mode, s)};
  }
  array old = take_slice(primals[0], slice, {}, s);
  const array& update = primals[1];
  array t_old = take_slice(t[0], slice, {}, s);
  if (mode == Accumulate::prod) {
    array moved = add(multiply(t_old, update, s), multiply(old, t[1], s), s);
    return {slice_update(t[0], moved, slice, Accumulate::none, s)};
  }
  array wins =
      mode == Accumulate::max ? greater(old, update, s) : less(old, update, s);
  return {slice_update(
      t[0], where(wins, t_old, t[1], s), slice, Accumulate::none, s)};
}

// Where old and new value are equal, max and min count as the new one, as
// maximum(a, b) counts as b.
std::vector<array> SliceUpdate::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  detail::StreamScope scope(stream());
  Stream s = stream();
  const auto& [mode, slice] = params();
  const array& c = cotangents[0];
  array inner = take_slice(c, slice, {}, s);
  array zero(0, c.dtype());
  auto wins = [&, mode = mode, &slice = slice] {
    array old = take_slice(primals[0], slice, {}, s);
    return mode == Accumulate::max ? greater(old, primals[1])
                                   : less(old, primals[1]);
  };
  std::vector<array> grads;
  for (int argnum : argnums) {
    bool of_source = argnum == 0;
    switch (mode) {
      case Accumulate::none:
        grads.push_back(
            of_source ? slice_update(c, zero, slice, mode, s) : inner);
        break;
      case Accumulate::sum:
        grads.push_back(of_source ? c : inner);
        break;
      case Accumulate::prod:
        grads.push_back(
            of_source
                ? slice_update(c, conjugate(primals[1]), slice, mode, s)
                : multiply(
                      inner, conjugate(take_slice(primals[0], slice, {}, s))));
        break;
      default:
        grads.push_back(
            of_source
                ? slice_update(
                      c, where(wins(), inner, zero), slice, Accumulate::none, s)
                : where(wins(), zero, inner));
    }
  }
  return grads;
}

Batched SliceUpdate::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<array> in = all_batched(inputs, axes, stream());
  auto [mode, slice] = params();
  slice.start.insert(slice.start.begin(), 0);
  slice.stop.insert(slice.stop.begin(), in[0].shape(0));
  slice.strides.insert(slice.strides.begin(), 1);
  return {{slice_update(in[0], in[1], slice, mode, stream())}, {0}};
}

}  // namespace mlx::core
