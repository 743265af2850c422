// Diagonals of arrays, and matrices made of them.
#pragma once

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// The elements a[..., i, ..., i + offset, ...] of two axes, which stand last
/// in the result. Raises AxisError for axes out of range, and
/// std::invalid_argument for less than two axes and an axis named twice.
MLX_API array diagonal(
    const array& a,
    int offset = 0,
    int axis1 = 0,
    int axis2 = 1,
    StreamOrDevice s = {});

/// Of a 1-d array the square matrix that has it as its k-th diagonal, of a 2-d
/// array its k-th diagonal. Raises std::invalid_argument for others.
MLX_API array diag(const array& a, int k = 0, StreamOrDevice s = {});

/// The sum along a diagonal; without dtype in the type that sums have.
MLX_API array trace(
    const array& a,
    int offset,
    int axis1,
    int axis2,
    Dtype dtype,
    StreamOrDevice s = {});
MLX_API array
trace(const array& a, int offset, int axis1, int axis2, StreamOrDevice s = {});
MLX_API array trace(const array& a, StreamOrDevice s = {});

}  // namespace mlx::core
