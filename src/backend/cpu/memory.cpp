// The public faces of the allocators: allocator.h and memory.h on host memory
// and, where a backend has some, the memory of its devices.
#include "mlx/memory.h"

#include "backend/cpu/allocator.h"
#include "mlx/allocator.h"
#include "mlx/device.h"

namespace mlx::core {

namespace {

std::atomic<DeviceMemory*> the_device_memory{nullptr};

}  // namespace

DeviceMemory* device_memory() {
  return the_device_memory.load(std::memory_order_acquire);
}

void set_device_memory(DeviceMemory* memory) {
  the_device_memory.store(memory, std::memory_order_release);
}

void note_peak_memory() {
  cpu::cpu_allocator().note_peak(get_active_memory());
}

namespace allocator {

void* Buffer::raw_ptr() {
  if (ptr_ == nullptr) {
    return nullptr;
  }
  BufferRecord* record = record_of(*this);
  void* host = record->host.load(std::memory_order_acquire);
  return host != nullptr ? host : device_memory()->fetch(record);
}

Buffer Allocator::make_buffer(void*, size_t) {
  return Buffer(nullptr);
}

void Allocator::release(Buffer) {}

Allocator& allocator() {
  return cpu::cpu_allocator();
}

// Kernels read memory of any alignment.
bool can_reuse_alien_buffer(void*) {
  return true;
}

}  // namespace allocator

size_t get_active_memory() {
  DeviceMemory* device = device_memory();
  return cpu::cpu_allocator().active_memory() +
         (device ? device->active_memory() : 0);
}

size_t get_peak_memory() {
  return cpu::cpu_allocator().peak_memory();
}

void reset_peak_memory() {
  cpu::cpu_allocator().reset_peak_memory();
}

size_t get_cache_memory() {
  DeviceMemory* device = device_memory();
  return cpu::cpu_allocator().cache_memory() +
         (device ? device->cache_memory() : 0);
}

size_t set_memory_limit(size_t limit) {
  size_t before = get_memory_limit();
  cpu::cpu_allocator().set_memory_limit(limit);
  if (DeviceMemory* device = device_memory()) {
    device->set_memory_limit(limit);
  }
  return before;
}

size_t get_memory_limit() {
  DeviceMemory* device = device_memory();
  return device && default_device() == Device::gpu
             ? device->memory_limit()
             : cpu::cpu_allocator().memory_limit();
}

size_t set_cache_limit(size_t limit) {
  DeviceMemory* device = device_memory();
  size_t of_device = device ? device->set_cache_limit(limit) : 0;
  size_t of_host = cpu::cpu_allocator().set_cache_limit(limit);
  return device && default_device() == Device::gpu ? of_device : of_host;
}

void clear_cache() {
  cpu::cpu_allocator().clear_cache();
  if (DeviceMemory* device = device_memory()) {
    device->clear_cache();
  }
}

size_t set_wired_limit(size_t) {
  return 0;
}

}  // namespace mlx::core
