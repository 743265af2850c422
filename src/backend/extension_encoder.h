// How the CUDA library, which this one does not know, serves extensions.
#pragma once

#include "mlx/backend/cuda/encoder.h"

namespace mlx::core {

using ExtensionEncoders = cu::CommandEncoder& (*)(Stream);

/// Called by the CUDA library when it is loaded.
void set_extension_encoders(ExtensionEncoders encoders);

}  // namespace mlx::core
