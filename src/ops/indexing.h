// What all operations that read or write at positions share: how values meet
// what is there, and the checks of index arrays.
//
// An index below 0 counts from the end. What lies outside even then never
// reaches memory outside of the array: reading moves it to the nearest valid
// position, writing leaves that update out. With MLX_CHECK_INDICES set to a
// number other than 0 both raise std::out_of_range when they are computed.
#pragma once

#include <vector>

#include "mlx/array.h"
#include "mlx/stream.h"
#include "ops/accumulate.h"

namespace mlx::core {

/// Raises std::invalid_argument unless the indices are integers, not bool.
void check_index_type(const char* op, const array& indices);

/// The indices of take_along_axis and its like: integers, or none at all.
array indices_along_axis(const char* op, const array& indices, Stream s);

/// The common shape of index arrays; a 0-d shape for none.
Shape index_shape(const std::vector<array>& indices);

/// Whether arrays of this shape have no elements.
bool is_empty(const Shape& shape);

/// Axes counted from 0, checked and without repetition, as many as indices.
std::vector<int> index_axes(
    const char* op,
    const array& a,
    const std::vector<array>& indices,
    const std::vector<int>& axes);

/// Raises std::invalid_argument when one of `argnums` names an index array
/// (inputs first to last).
void check_not_indices(
    const char* op, const std::vector<int>& argnums, int first, int last);

/// 0, 1, ... along a batch axis in front of `index_ndim` others: the index of
/// the batch axis, for batch rules in which array and indices are batched.
array batch_positions(ShapeElem batch, int index_ndim, Stream s);

}  // namespace mlx::core
