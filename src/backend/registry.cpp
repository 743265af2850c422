// The only file that knows which backends this build has.
#include "backend/backend.h"
#include "backend/cpu/backend.h"

namespace mlx::core {

Backend* find_backend(Device::DeviceType type) {
  return type == Device::cpu ? &cpu::backend() : nullptr;
}

Backend& get_backend(Device::DeviceType type) {
  if (Backend* found = find_backend(type)) {
    return *found;
  }
  throw std::runtime_error(
      "[gpu] no usable backend: this process has no NVIDIA driver or no CUDA "
      "library. Use mx.cpu.");
}

}  // namespace mlx::core
