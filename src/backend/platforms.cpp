// What programs ask of a maker's devices by name, answered by the general
// functions.
#include "mlx/backend/cuda/cuda.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/backend/metal/metal.h"
#include "mlx/device.h"
#include "types/error.h"

namespace mlx::core {

bool gpu::is_available() {
  return mlx::core::is_available(Device::gpu);
}

int gpu::device_count() {
  return mlx::core::device_count(Device::gpu);
}

const std::unordered_map<std::string, std::variant<std::string, size_t>>&
gpu::device_info(int device_index) {
  return mlx::core::device_info(Device(Device::gpu, device_index));
}

bool cu::is_available() {
  return gpu::is_available();
}

const std::unordered_map<std::string, std::variant<std::string, size_t>>&
cu::device_info(int device_index) {
  return gpu::device_info(device_index);
}

namespace metal {

namespace {

[[noreturn]] void no_metal(const char* name) {
  throw std::runtime_error(message(
      name, "there is no Metal here, which only Apple's systems have."));
}

}  // namespace

bool is_available() {
  return false;
}

void start_capture(std::string) {}

void stop_capture() {}

const std::unordered_map<std::string, std::variant<std::string, size_t>>&
device_info() {
  no_metal("metal::device_info");
}

void set_metallib_path(const std::string&) {}

const std::string& get_metallib_path() {
  no_metal("metal::get_metallib_path");
}

}  // namespace metal

}  // namespace mlx::core
