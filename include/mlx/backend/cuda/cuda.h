// Whether there is an NVIDIA GPU, and which one.
#pragma once

#include <string>
#include <unordered_map>
#include <variant>

#include "mlx/api.h"

namespace mlx::core::cu {

/// Whether a GPU can be used: there are a driver, a device and libmlx_cuda.
MLX_API bool is_available();

/// What mlx::core::device_info() says of a gpu; empty where there is none.
MLX_API const
    std::unordered_map<std::string, std::variant<std::string, size_t>>&
    device_info(int device_index = 0);

}  // namespace mlx::core::cu
