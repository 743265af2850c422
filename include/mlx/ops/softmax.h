// Softmax.
#pragma once

#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// exp(a - max) / sum(exp(a - max)) over the axes (without axes over all
/// elements). Integers give float32. 16-bit types compute in float32;
/// `precise` is accepted for that reason and changes nothing.
MLX_API array softmax(
    const array& a,
    const std::vector<int>& axes,
    bool precise = false,
    StreamOrDevice s = {});
MLX_API array
softmax(const array& a, bool precise = false, StreamOrDevice s = {});
inline array softmax(
    const array& a, int axis, bool precise = false, StreamOrDevice s = {}) {
  return softmax(a, std::vector<int>{axis}, precise, s);
}

}  // namespace mlx::core
