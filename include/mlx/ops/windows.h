// Window functions of signal processing: M samples, symmetric, float32.
#pragma once

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// 1 - |2 n / (M - 1) - 1|: a triangle that is 0 at both ends.
MLX_API array bartlett(int M, StreamOrDevice s = {});
/// 0.5 - 0.5 cos(2 pi n / (M - 1)).
MLX_API array hanning(int M, StreamOrDevice s = {});
/// 0.54 - 0.46 cos(2 pi n / (M - 1)).
MLX_API array hamming(int M, StreamOrDevice s = {});
/// 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)).
MLX_API array blackman(int M, StreamOrDevice s = {});

}  // namespace mlx::core
