// The Walsh-Hadamard transform.
#pragma once

#include <optional>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// scale * H x along the last axis of length n = m 2^k, m one of 1, 12, 20 and
/// 28; the scale is 1 / sqrt(n) unless given. bool and integers give float32;
/// 16-bit types compute in float32. Raises std::invalid_argument for other
/// lengths, empty arrays and complex numbers.
MLX_API array hadamard_transform(
    const array& a,
    std::optional<float> scale = std::nullopt,
    StreamOrDevice s = {});

}  // namespace mlx::core
