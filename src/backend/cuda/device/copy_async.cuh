// Copies to shared memory that a thread begins and awaits later, in stages: all
// that was begun since the last stage was closed.
#pragma once

#include <cstdint>

namespace mlx::core::cuda {

/// Begins to copy 16 bytes, or to clear them; the address must exist either
/// way.
__device__ __forceinline__ void copy_or_clear(
    uint4* to, const void* from, bool exists) {
  auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  int size = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address),
               "l"(from),
               "r"(size)
               : "memory");
}
__device__ __forceinline__ void close_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits for all stages but the newest `still`.
template <int still>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(still) : "memory");
}

}  // namespace mlx::core::cuda
