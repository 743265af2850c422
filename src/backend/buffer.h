// What Buffer::ptr() points to: the record of one block. Its bytes are in host
// memory, in the memory of a device, or in both; who needs them elsewhere
// makes a copy, which stays with the record.
#pragma once

#include <atomic>
#include <cstddef>

#include "mlx/allocator.h"

namespace mlx::core {

/// Allocators extend it. A block that a device made is its own `device`; the
/// host's blocks have there what a device made of them, if anything.
///
/// Bytes that are in two places are never overwritten, so copies do not age:
/// is_donatable() refuses such blocks.
struct BufferRecord {
  std::atomic<void*> host{nullptr};  // null if they are not there
  size_t bytes = 0;                  // how many fit
  std::atomic<BufferRecord*> device{nullptr};

  bool is_on_device() const {
    return device.load(std::memory_order_relaxed) == this;
  }
  bool is_in_one_place() const {
    return (host.load(std::memory_order_relaxed) == nullptr) !=
           (device.load(std::memory_order_relaxed) == nullptr);
  }
};

inline BufferRecord* record_of(allocator::Buffer buffer) {
  return static_cast<BufferRecord*>(buffer.ptr());
}

/// The memory of the devices behind one backend that has memory of its own.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Takes back a block, or the copy of a host's block. Work that was
  /// submitted before may go on using it.
  virtual void free(BufferRecord* record) = 0;
  /// Copies the bytes of a device's block to host memory, at once; fills
  /// `host` and returns it. Raises std::runtime_error when that fails.
  virtual void* fetch(BufferRecord* record) = 0;
  /// Copies `bytes` from `offset` on to `to`, at once.
  virtual void read(
      BufferRecord* record, size_t offset, size_t bytes, void* to) = 0;

  virtual size_t active_memory() const = 0;
  virtual size_t cache_memory() const = 0;
  virtual size_t memory_limit() const = 0;
  virtual size_t set_memory_limit(size_t limit) = 0;
  virtual size_t set_cache_limit(size_t limit) = 0;
  virtual void clear_cache() = 0;
};

/// Null until a backend has announced its memory.
DeviceMemory* device_memory();
void set_device_memory(DeviceMemory* memory);

/// Where host and device memory together may have a new peak.
void note_peak_memory();

}  // namespace mlx::core
