// Devices: where an operation runs.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <variant>

#include "mlx/api.h"

namespace mlx::core {

struct MLX_API Device {
  enum class DeviceType { cpu, gpu };

  static constexpr DeviceType cpu = DeviceType::cpu;
  static constexpr DeviceType gpu = DeviceType::gpu;

  Device(DeviceType type, int index = 0) : type(type), index(index) {}

  bool operator==(const Device&) const = default;
  bool operator<(const Device& rhs) const {
    return type < rhs.type || (type == rhs.type && index < rhs.index);
  }

  DeviceType type;
  int index;
};

inline bool operator==(const Device& device, Device::DeviceType type) {
  return device.type == type;
}

/// The device of operations that name none: gpu if usable, else cpu.
MLX_API const Device& default_device();

/// Sets the default device of the process. Raises std::invalid_argument when
/// no backend serves it.
MLX_API void set_default_device(const Device& d);

MLX_API bool is_available(const Device& d);
MLX_API int device_count(Device::DeviceType type);

/// Facts about a device, at least `device_name` and `architecture`.
MLX_API const
    std::unordered_map<std::string, std::variant<std::string, size_t>>&
    device_info(const Device& d = default_device());

}  // namespace mlx::core
