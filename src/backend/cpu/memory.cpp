// The public faces of the allocator: allocator.h and memory.h on host memory.
#include "mlx/memory.h"

#include "backend/cpu/allocator.h"
#include "mlx/allocator.h"

namespace mlx::core {
namespace allocator {

void* Buffer::raw_ptr() {
  return ptr_ == nullptr ? nullptr : record_of(*this)->host;
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
  return cpu::cpu_allocator().active_memory();
}

size_t get_peak_memory() {
  return cpu::cpu_allocator().peak_memory();
}

void reset_peak_memory() {
  cpu::cpu_allocator().reset_peak_memory();
}

size_t get_cache_memory() {
  return cpu::cpu_allocator().cache_memory();
}

size_t set_memory_limit(size_t limit) {
  return cpu::cpu_allocator().set_memory_limit(limit);
}

size_t get_memory_limit() {
  return cpu::cpu_allocator().memory_limit();
}

size_t set_cache_limit(size_t limit) {
  return cpu::cpu_allocator().set_cache_limit(limit);
}

void clear_cache() {
  cpu::cpu_allocator().clear_cache();
}

size_t set_wired_limit(size_t) {
  return 0;
}

}  // namespace mlx::core
