// Numbers of 8 bits: 1 sign, 4 exponent and 3 mantissa bits (e4m3, bias 7,
// without infinities; 0x7f and 0xff are NaN), kept as uint8.
#pragma once

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// The numbers as a floating type. Raises std::invalid_argument unless x is
/// uint8 and dtype a real floating type.
MLX_API array from_fp8(array x, Dtype dtype, StreamOrDevice s = {});

/// The nearest numbers, halves to even; what is beyond 448 becomes 448, NaN
/// too. Raises std::invalid_argument unless x has a real floating type.
MLX_API array to_fp8(array x, StreamOrDevice s = {});

}  // namespace mlx::core
