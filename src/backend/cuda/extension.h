// Encoders for extensions.
#pragma once

#include "mlx/backend/cuda/encoder.h"

namespace mlx::core::cuda {

/// What cu::get_command_encoder gives.
cu::CommandEncoder& extension_encoder(Stream s);

}  // namespace mlx::core::cuda
