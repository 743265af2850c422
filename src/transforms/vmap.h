// The two halves of vmap, for callers that flatten trees between them.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"

namespace mlx::core::detail {

/// Runs `fun` on placeholders without the mapped axes. Returns the
/// placeholders and the outputs. Axes are counted from 0; -1 maps nothing.
MLX_API std::pair<std::vector<array>, std::vector<array>> vmap_trace(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& inputs,
    const std::vector<int>& in_axes);

/// The outputs for the whole batch, mapped axes at `out_axes` (-1: the output
/// does not depend on the batch and is returned once).
MLX_API std::vector<array> vmap_replace(
    const std::vector<array>& inputs,
    const std::vector<array>& placeholders,
    const std::vector<array>& outputs,
    const std::vector<int>& in_axes,
    const std::vector<int>& out_axes);

}  // namespace mlx::core::detail
