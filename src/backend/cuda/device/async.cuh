// Copies from global to shared memory that go on while a thread computes.
#pragma once

#include <cstdint>

namespace mlx::core::cuda {

/// Where shared memory lies, in bytes.
__device__ __forceinline__ uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// Begins a copy of 4, 8 or 16 bytes, both addresses aligned to that.
template <int Bytes>
__device__ __forceinline__ void copy_async(uint32_t to, const void* from) {
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
                 "l"(from)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to),
                 "l"(from),
                 "n"(Bytes)
                 : "memory");
  }
}

/// Ends a group of copies, perhaps an empty one.
__device__ __forceinline__ void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `Pending` of this thread's groups are under way.
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace mlx::core::cuda
