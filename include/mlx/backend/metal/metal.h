// For programs that name Metal, which is not here: it is never available.
#pragma once

#include <string>
#include <unordered_map>
#include <variant>

#include "mlx/api.h"

namespace mlx::core::metal {

/// False.
MLX_API bool is_available();

/// Nothing happens: there are no captures.
MLX_API void start_capture(std::string path = "");
MLX_API void stop_capture();

/// Raises std::runtime_error. Ask mlx::core::device_info().
MLX_API const
    std::unordered_map<std::string, std::variant<std::string, size_t>>&
    device_info();

/// Nothing happens.
MLX_API void set_metallib_path(const std::string& path);
/// Raises std::runtime_error.
MLX_API const std::string& get_metallib_path();

}  // namespace mlx::core::metal
