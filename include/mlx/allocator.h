// Memory for arrays. Extensions allocate with allocator::malloc and hand the
// buffer to array::set_data.
#pragma once

#include <cstddef>

#include "mlx/api.h"

namespace mlx::core::allocator {

// A handle to a block of memory, cheap to copy; it does not own the block.
// ptr() names the block to the allocator that made it; only raw_ptr() leads to
// the bytes.
class MLX_API Buffer {
 public:
  explicit Buffer(void* ptr) : ptr_(ptr) {}

  // The bytes as the host sees them; null for a null buffer. Aligned to 64
  // bytes, unless the memory is someone else's (make_buffer).
  void* raw_ptr();

  const void* ptr() const { return ptr_; }
  void* ptr() { return ptr_; }

 private:
  void* ptr_;
};

class MLX_API Allocator {
 public:
  // At least `size` bytes, not initialized; 0 is a legal size. Throws
  // std::runtime_error when there is not enough memory.
  virtual Buffer malloc(size_t size) = 0;

  // Takes a buffer back. A null buffer is fine.
  virtual void free(Buffer buffer) = 0;

  // Bytes that fit in the buffer, at least what was asked for.
  virtual size_t size(Buffer buffer) const = 0;

  // A buffer around memory of the caller, which stays the caller's; a null
  // buffer from an allocator that cannot do this. It ends with release().
  virtual Buffer make_buffer(void* ptr, size_t size);
  virtual void release(Buffer buffer);

  Allocator() = default;
  Allocator(const Allocator& other) = delete;
  Allocator(Allocator&& other) = delete;
  Allocator& operator=(const Allocator& other) = delete;
  Allocator& operator=(Allocator&& other) = delete;
  virtual ~Allocator() = default;
};

// The allocator of this process.
MLX_API Allocator& allocator();

inline Buffer malloc(size_t size) {
  return allocator().malloc(size);
}

inline void free(Buffer buffer) {
  allocator().free(buffer);
}

inline Buffer make_buffer(void* ptr, size_t size) {
  return allocator().make_buffer(ptr, size);
}

inline void release(Buffer buffer) {
  allocator().release(buffer);
}

// True if make_buffer can take this pointer, so that no copy is needed.
MLX_API bool can_reuse_alien_buffer(void* ptr);

}  // namespace mlx::core::allocator
