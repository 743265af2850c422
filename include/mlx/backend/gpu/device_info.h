// The GPUs, whatever their maker.
#pragma once

#include <string>
#include <unordered_map>
#include <variant>

#include "mlx/api.h"

namespace mlx::core::gpu {

MLX_API bool is_available();
MLX_API int device_count();
/// What mlx::core::device_info() says of a gpu; empty where there is none.
MLX_API const
    std::unordered_map<std::string, std::variant<std::string, size_t>>&
    device_info(int device_index = 0);

}  // namespace mlx::core::gpu
