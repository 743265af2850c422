// Running reductions along an axis; without one over the flattened array.
// `reverse` runs from the end; without `inclusive` an element's own value is
// left out and the first result is the neutral element.
#pragma once

#include <optional>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// Running sums; bool adds up in int32, other types stay unless dtype is given.
MLX_API array cumsum(
    const array& a,
    bool reverse = false,
    bool inclusive = true,
    std::optional<Dtype> dtype = std::nullopt,
    StreamOrDevice s = {});
MLX_API array cumsum(
    const array& a,
    int axis,
    bool reverse = false,
    bool inclusive = true,
    std::optional<Dtype> dtype = std::nullopt,
    StreamOrDevice s = {});
// The forms before there was a dtype.
inline array cumsum(
    const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumsum(a, reverse, inclusive, std::nullopt, s);
}
inline array cumsum(
    const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumsum(a, axis, reverse, inclusive, std::nullopt, s);
}

/// Running products.
MLX_API array cumprod(
    const array& a,
    bool reverse = false,
    bool inclusive = true,
    std::optional<Dtype> dtype = std::nullopt,
    StreamOrDevice s = {});
MLX_API array cumprod(
    const array& a,
    int axis,
    bool reverse = false,
    bool inclusive = true,
    std::optional<Dtype> dtype = std::nullopt,
    StreamOrDevice s = {});
// The forms before there was a dtype.
inline array cumprod(
    const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumprod(a, reverse, inclusive, std::nullopt, s);
}
inline array cumprod(
    const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumprod(a, axis, reverse, inclusive, std::nullopt, s);
}

/// Running maxima.
MLX_API array cummax(
    const array& a,
    bool reverse = false,
    bool inclusive = true,
    StreamOrDevice s = {});
MLX_API array cummax(
    const array& a,
    int axis,
    bool reverse = false,
    bool inclusive = true,
    StreamOrDevice s = {});

/// Running minima.
MLX_API array cummin(
    const array& a,
    bool reverse = false,
    bool inclusive = true,
    StreamOrDevice s = {});
MLX_API array cummin(
    const array& a,
    int axis,
    bool reverse = false,
    bool inclusive = true,
    StreamOrDevice s = {});

/// log(cumsum(exp(a))) without overflow; integers give float32.
MLX_API array logcumsumexp(
    const array& a,
    bool reverse = false,
    bool inclusive = true,
    StreamOrDevice s = {});
MLX_API array logcumsumexp(
    const array& a,
    int axis,
    bool reverse = false,
    bool inclusive = true,
    StreamOrDevice s = {});

/// a[i + 1] - a[i] along an axis, n times over; of bool, whether they differ.
/// Raises std::invalid_argument for a negative n.
MLX_API array
diff(const array& a, int n = 1, int axis = -1, StreamOrDevice s = {});

}  // namespace mlx::core
