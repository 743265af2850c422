// What Buffer::ptr() points to: the record of one block. Allocators extend it;
// a backend whose blocks live on a device sets host when it has made a copy.
#pragma once

#include <cstddef>

#include "mlx/allocator.h"

namespace mlx::core {

struct BufferRecord {
  void* host = nullptr;  // the bytes on the host, null if they are not there
  size_t bytes = 0;      // how many fit
};

inline BufferRecord* record_of(allocator::Buffer buffer) {
  return static_cast<BufferRecord*>(buffer.ptr());
}

}  // namespace mlx::core
