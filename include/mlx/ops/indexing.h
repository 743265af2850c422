// Reading and writing elements at computed positions. Negative indices count
// from the end; array indices are not checked against the bounds.
#pragma once

#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// The slice of size `slice_size` at `start` (one entry an axis of `axes`,
/// whole axes otherwise); `start` is clamped so that the slice fits.
MLX_API array slice(
    const array& a,
    const array& start,
    std::vector<int> axes,
    Shape slice_size,
    StreamOrDevice s = {});

/// `src` with `update` (broadcast to the slice) in place of a slice.
MLX_API array slice_update(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    Shape strides,
    StreamOrDevice s = {});
MLX_API array slice_update(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    StreamOrDevice s = {});
MLX_API array slice_update(
    const array& src,
    const array& update,
    const array& start,
    std::vector<int> axes,
    StreamOrDevice s = {});

/// `update` added to a slice of `src`.
MLX_API array slice_update_add(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    Shape strides,
    StreamOrDevice s = {});
MLX_API array slice_update_add(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    StreamOrDevice s = {});

/// `update` multiplied into a slice of `src`.
MLX_API array slice_update_prod(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    Shape strides,
    StreamOrDevice s = {});
MLX_API array slice_update_prod(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    StreamOrDevice s = {});

/// `update` by maximum into a slice of `src`.
MLX_API array slice_update_max(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    Shape strides,
    StreamOrDevice s = {});
MLX_API array slice_update_max(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    StreamOrDevice s = {});

/// `update` by minimum into a slice of `src`.
MLX_API array slice_update_min(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    Shape strides,
    StreamOrDevice s = {});
MLX_API array slice_update_min(
    const array& src,
    const array& update,
    Shape start,
    Shape stop,
    StreamOrDevice s = {});

/// Slices of size `slice_sizes` whose positions along `axes[i]` are
/// `indices[i]` (integers, broadcast together). The result has the indices'
/// shape followed by the slices' shape.
MLX_API array gather(
    const array& a,
    const std::vector<array>& indices,
    const std::vector<int>& axes,
    const Shape& slice_sizes,
    StreamOrDevice s = {});
inline array gather(
    const array& a,
    const array& indices,
    int axis,
    const Shape& slice_sizes,
    StreamOrDevice s = {}) {
  return gather(
      a, std::vector<array>{indices}, std::vector<int>{axis}, slice_sizes, s);
}

/// The sub-arrays at `indices` along an axis (without axis: of the flattened
/// array).
MLX_API array
take(const array& a, const array& indices, int axis, StreamOrDevice s = {});
MLX_API array take(const array& a, int index, int axis, StreamOrDevice s = {});
MLX_API array take(const array& a, const array& indices, StreamOrDevice s = {});
MLX_API array take(const array& a, int index, StreamOrDevice s = {});
/// a[..., indices[..., j, ...], ...] with shapes broadcast outside of `axis`.
MLX_API array take_along_axis(
    const array& a, const array& indices, int axis, StreamOrDevice s = {});
/// `a` with `values` at `indices` along an axis.
MLX_API array put_along_axis(
    const array& a,
    const array& indices,
    const array& values,
    int axis,
    StreamOrDevice s = {});
MLX_API array scatter_add_axis(
    const array& a,
    const array& indices,
    const array& values,
    int axis,
    StreamOrDevice s = {});
/// `a` with `src`'s elements, in order, where `mask` is true.
MLX_API array masked_scatter(
    const array& a, const array& mask, const array& src, StreamOrDevice s = {});

/// `a` with slices `updates` at positions as in gather, replacing what is there
/// (of several updates at one place one wins).
MLX_API array scatter(
    const array& a,
    const std::vector<array>& indices,
    const array& updates,
    const std::vector<int>& axes,
    StreamOrDevice s = {});
inline array scatter(
    const array& a,
    const array& indices,
    const array& updates,
    int axis,
    StreamOrDevice s = {}) {
  return scatter(
      a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}

/// `a` with slices `updates` at positions as in gather, added.
MLX_API array scatter_add(
    const array& a,
    const std::vector<array>& indices,
    const array& updates,
    const std::vector<int>& axes,
    StreamOrDevice s = {});
inline array scatter_add(
    const array& a,
    const array& indices,
    const array& updates,
    int axis,
    StreamOrDevice s = {}) {
  return scatter_add(
      a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}

/// `a` with slices `updates` at positions as in gather, multiplied.
MLX_API array scatter_prod(
    const array& a,
    const std::vector<array>& indices,
    const array& updates,
    const std::vector<int>& axes,
    StreamOrDevice s = {});
inline array scatter_prod(
    const array& a,
    const array& indices,
    const array& updates,
    int axis,
    StreamOrDevice s = {}) {
  return scatter_prod(
      a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}

/// `a` with slices `updates` at positions as in gather, by maximum.
MLX_API array scatter_max(
    const array& a,
    const std::vector<array>& indices,
    const array& updates,
    const std::vector<int>& axes,
    StreamOrDevice s = {});
inline array scatter_max(
    const array& a,
    const array& indices,
    const array& updates,
    int axis,
    StreamOrDevice s = {}) {
  return scatter_max(
      a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}

/// `a` with slices `updates` at positions as in gather, by minimum.
MLX_API array scatter_min(
    const array& a,
    const std::vector<array>& indices,
    const array& updates,
    const std::vector<int>& axes,
    StreamOrDevice s = {});
inline array scatter_min(
    const array& a,
    const array& indices,
    const array& updates,
    int axis,
    StreamOrDevice s = {}) {
  return scatter_min(
      a, std::vector<array>{indices}, updates, std::vector<int>{axis}, s);
}

}  // namespace mlx::core
