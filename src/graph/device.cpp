// The default device and what the backends say of devices.
#include "mlx/device.h"

#include <atomic>

#include "backend/backend.h"
#include "types/error.h"

namespace mlx::core {

namespace {

constexpr int kMaxDevices = 64;

// Devices have fixed addresses, so that the default is one atomic pointer.
const Device* device_slot(Device d) {
  static const auto* slots = [] {
    auto* all = new std::vector<Device>;
    for (Device::DeviceType type : {Device::cpu, Device::gpu}) {
      for (int i = 0; i < kMaxDevices; ++i) {
        all->emplace_back(type, i);
      }
    }
    return all;
  }();
  return &(*slots)[(d.type == Device::gpu ? kMaxDevices : 0) + d.index];
}

std::atomic<const Device*>& default_slot() {
  static std::atomic<const Device*> slot = device_slot(
      Device(find_backend(Device::gpu) ? Device::gpu : Device::cpu));
  return slot;
}

}  // namespace

const Device& default_device() {
  return *default_slot().load(std::memory_order_acquire);
}

void set_default_device(const Device& d) {
  if (!is_available(d)) {
    invalid(
        "set_default_device",
        "no such device: ",
        d,
        ". No backend of this process serves it.");
  }
  default_slot().store(device_slot(d), std::memory_order_release);
}

bool is_available(const Device& d) {
  return d.index >= 0 && d.index < device_count(d.type);
}

int device_count(Device::DeviceType type) {
  Backend* backend = find_backend(type);
  return backend ? backend->device_count() : 0;
}

const DeviceInfo& device_info(const Device& d) {
  static const DeviceInfo* nothing = new DeviceInfo;
  return is_available(d) ? get_backend(d.type).device_info(d.index) : *nothing;
}

}  // namespace mlx::core
