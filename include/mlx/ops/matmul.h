// Matrix products.
#pragma once

#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// NumPy's matmul for inexact types: 1-d operands count as row and column,
/// leading axes broadcast.
MLX_API array matmul(const array& a, const array& b, StreamOrDevice s = {});

/// alpha * (a @ b) + beta * c, with c broadcast to the product.
MLX_API array addmm(
    array c,
    array a,
    array b,
    const float& alpha = 1.f,
    const float& beta = 1.f,
    StreamOrDevice s = {});

/// Sums of products over the last `axis` axes of a and the first of b, or
/// over the named pairs of axes.
MLX_API array tensordot(
    const array& a, const array& b, const int axis = 2, StreamOrDevice s = {});
MLX_API array tensordot(
    const array& a,
    const array& b,
    const std::vector<int>& axes_a,
    const std::vector<int>& axes_b,
    StreamOrDevice s = {});

/// All products of the elements of two flattened arrays.
MLX_API array outer(const array& a, const array& b, StreamOrDevice s = {});
/// Sums of products over the last axes.
MLX_API array inner(const array& a, const array& b, StreamOrDevice s = {});
/// Each element of a by all of b, in blocks of the shape of b (NumPy's kron).
/// Raises std::invalid_argument for empty arrays.
MLX_API array kron(const array& a, const array& b, StreamOrDevice s = {});
/// Sums of conj(a) * b along an axis; the other axes broadcast. Both have the
/// axis, counted from the end, in the same length.
MLX_API array
vecdot(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});

}  // namespace mlx::core
