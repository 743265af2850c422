// Operations that rearrange elements: views where strides allow, else copies.
// An axis may count from the end; one out of range raises AxisError.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// The elements converted to `dtype`; floats to integers by truncation.
MLX_API array astype(array a, Dtype dtype, StreamOrDevice s = {});

/// The memory of `a` under another type; the last axis grows or shrinks with
/// the element size and must be divisible.
MLX_API array view(const array& a, const Dtype& dtype, StreamOrDevice s = {});

/// Elements offset + sum(index * strides) of the row-major elements of `a`.
/// Raises std::invalid_argument when that reaches outside of `a`.
MLX_API array as_strided(
    array a,
    Shape shape,
    Strides strides,
    size_t offset,
    StreamOrDevice s = {});

/// The same elements in row-major memory (or column-major if allowed).
MLX_API array
contiguous(const array& a, bool allow_col_major = false, StreamOrDevice s = {});

/// One entry of `shape` may be -1: it is found from the size.
MLX_API array reshape(const array& a, Shape shape, StreamOrDevice s = {});
MLX_API array
unflatten(const array& a, int axis, Shape shape, StreamOrDevice s = {});
MLX_API array flatten(
    const array& a, int start_axis, int end_axis = -1, StreamOrDevice s = {});
MLX_API array flatten(const array& a, StreamOrDevice s = {});

/// Removes axes of length 1 (all of them when none is named).
MLX_API array
squeeze(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
MLX_API array squeeze(const array& a, int axis, StreamOrDevice s = {});
MLX_API array squeeze(const array& a, StreamOrDevice s = {});

/// Adds axes of length 1 at the given positions of the result.
MLX_API array expand_dims(
    const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
MLX_API array expand_dims(const array& a, int axis, StreamOrDevice s = {});

MLX_API array
transpose(const array& a, std::vector<int> axes, StreamOrDevice s = {});
inline array transpose(
    const array& a, std::initializer_list<int> axes, StreamOrDevice s = {}) {
  return transpose(a, std::vector<int>(axes), s);
}
/// All axes reversed.
MLX_API array transpose(const array& a, StreamOrDevice s = {});
MLX_API array
swapaxes(const array& a, int axis1, int axis2, StreamOrDevice s = {});
MLX_API array
moveaxis(const array& a, int source, int destination, StreamOrDevice s = {});
/// The elements in reverse along the axes (all when none is named).
MLX_API array
flip(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
MLX_API array flip(const array& a, int axis, StreamOrDevice s = {});
MLX_API array flip(const array& a, StreamOrDevice s = {});

MLX_API array
broadcast_to(const array& a, const Shape& shape, StreamOrDevice s = {});
MLX_API std::vector<array> broadcast_arrays(
    const std::vector<array>& inputs, StreamOrDevice s = {});

/// NumPy's basic slice; bounds are clipped, strides may be negative.
MLX_API array slice(
    const array& a,
    Shape start,
    Shape stop,
    Shape strides,
    StreamOrDevice s = {});
inline array slice(
    const array& a,
    std::initializer_list<int> start,
    Shape stop,
    Shape strides,
    StreamOrDevice s = {}) {
  return slice(a, Shape(start), std::move(stop), std::move(strides), s);
}
MLX_API array
slice(const array& a, Shape start, Shape stop, StreamOrDevice s = {});

/// Joins along an axis; types are promoted. Raises std::invalid_argument for
/// no arrays or shapes that differ elsewhere.
MLX_API array
concatenate(std::vector<array> arrays, int axis, StreamOrDevice s = {});
/// Joins the flattened arrays.
MLX_API array concatenate(std::vector<array> arrays, StreamOrDevice s = {});
/// Joins along a new axis.
MLX_API array
stack(const std::vector<array>& arrays, int axis, StreamOrDevice s = {});
MLX_API array stack(const std::vector<array>& arrays, StreamOrDevice s = {});

/// Equal parts, or parts that begin at the given indices.
MLX_API std::vector<array> split(
    const array& a, int num_splits, int axis, StreamOrDevice s = {});
MLX_API std::vector<array> split(
    const array& a, int num_splits, StreamOrDevice s = {});
MLX_API std::vector<array> split(
    const array& a, const Shape& indices, int axis, StreamOrDevice s = {});
MLX_API std::vector<array> split(
    const array& a, const Shape& indices, StreamOrDevice s = {});
/// The sub-arrays along an axis, without it.
MLX_API std::vector<array> unstack(
    const array& a, int axis, StreamOrDevice s = {});
MLX_API std::vector<array> unstack(const array& a, StreamOrDevice s = {});

MLX_API array
repeat(const array& arr, int repeats, int axis, StreamOrDevice s = {});
MLX_API array repeat(const array& arr, int repeats, StreamOrDevice s = {});
MLX_API array
tile(const array& arr, std::vector<int> reps, StreamOrDevice s = {});
/// Adds entries before and after: `pad_value` for mode "constant", the border
/// for "edge", mirrored elements for "reflect" (border once) and "symmetric".
MLX_API array
pad(const array& a,
    const std::vector<int>& axes,
    const Shape& low_pad_size,
    const Shape& high_pad_size,
    const array& pad_value = array(0),
    const std::string& mode = "constant",
    StreamOrDevice s = {});
MLX_API array
pad(const array& a,
    const std::vector<std::pair<int, int>>& pad_width,
    const array& pad_value = array(0),
    const std::string& mode = "constant",
    StreamOrDevice s = {});
MLX_API array
pad(const array& a,
    const std::pair<int, int>& pad_width,
    const array& pad_value = array(0),
    const std::string& mode = "constant",
    StreamOrDevice s = {});
MLX_API array
pad(const array& a,
    int pad_width,
    const array& pad_value = array(0),
    const std::string& mode = "constant",
    StreamOrDevice s = {});

/// Shifts elements along axes, those that fall out coming in again.
MLX_API array roll(const array& a, int shift, StreamOrDevice s = {});
MLX_API array roll(const array& a, const Shape& shift, StreamOrDevice s = {});
MLX_API array roll(const array& a, int shift, int axis, StreamOrDevice s = {});
MLX_API array roll(
    const array& a,
    int shift,
    const std::vector<int>& axes,
    StreamOrDevice s = {});
MLX_API array
roll(const array& a, const Shape& shift, int axis, StreamOrDevice s = {});
MLX_API array roll(
    const array& a,
    const Shape& shift,
    const std::vector<int>& axes,
    StreamOrDevice s = {});

MLX_API std::vector<array> meshgrid(
    const std::vector<array>& arrays,
    bool sparse = false,
    const std::string& indexing = "xy",
    StreamOrDevice s = {});
MLX_API array atleast_1d(const array& a, StreamOrDevice s = {});
MLX_API std::vector<array> atleast_1d(
    const std::vector<array>& a, StreamOrDevice s = {});
MLX_API array atleast_2d(const array& a, StreamOrDevice s = {});
MLX_API std::vector<array> atleast_2d(
    const std::vector<array>& a, StreamOrDevice s = {});
MLX_API array atleast_3d(const array& a, StreamOrDevice s = {});
MLX_API std::vector<array> atleast_3d(
    const std::vector<array>& a, StreamOrDevice s = {});

/// The product of the axes' lengths, as an array that shapeless compile keeps
/// up to date; its reciprocal when `inverted`.
MLX_API array number_of_elements(
    const array& a,
    std::vector<int> axes,
    bool inverted,
    Dtype dtype = int32,
    StreamOrDevice s = {});

/// `inputs`, to be computed after `dependencies`.
MLX_API std::vector<array> depends(
    const std::vector<array>& inputs, const std::vector<array>& dependencies);

}  // namespace mlx::core
