// Sorting and selection along an axis; without one over the flattened array.
// NaN is larger than everything. Sorts are stable.
#pragma once

#include <string>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// The elements in ascending order.
MLX_API array sort(const array& a, StreamOrDevice s = {});
MLX_API array sort(const array& a, int axis, StreamOrDevice s = {});
/// The indices (uint32) that sort the elements.
MLX_API array argsort(const array& a, StreamOrDevice s = {});
MLX_API array argsort(const array& a, int axis, StreamOrDevice s = {});
/// Element kth is where sorting would put it, smaller ones before it.
MLX_API array partition(const array& a, int kth, StreamOrDevice s = {});
MLX_API array
partition(const array& a, int kth, int axis, StreamOrDevice s = {});
MLX_API array argpartition(const array& a, int kth, StreamOrDevice s = {});
MLX_API array
argpartition(const array& a, int kth, int axis, StreamOrDevice s = {});
/// The k largest elements in ascending order.
MLX_API array topk(const array& a, int k, StreamOrDevice s = {});
MLX_API array topk(const array& a, int k, int axis, StreamOrDevice s = {});
/// Where `values` belong in the sorted 1-d sequence, before ("left") or after
/// ("right") equal elements; uint32.
MLX_API array searchsorted(
    const array& sorted_sequence,
    const array& values,
    const std::string& side = "left",
    StreamOrDevice s = {});

}  // namespace mlx::core
