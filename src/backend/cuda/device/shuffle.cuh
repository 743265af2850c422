// Exchange of values of any type of up to eight bytes between the lanes of a
// warp, all of which take part.
#pragma once

#include <cstring>
#include <type_traits>

namespace mlx::core::cuda {

namespace detail {

template <typename A, typename F>
__device__ __forceinline__ A shuffled(A x, F exchange) {
  using Bits = std::conditional_t<sizeof(A) == 8, unsigned long long, unsigned>;
  Bits bits = 0;
  memcpy(&bits, &x, sizeof(A));
  bits = exchange(bits);
  memcpy(&x, &bits, sizeof(A));
  return x;
}

}  // namespace detail

constexpr unsigned kAllLanes = 0xffffffffu;

/// The value of the lane whose number differs by `step`'s bits.
template <typename A>
__device__ __forceinline__ A shuffle_xor(A x, int step) {
  return detail::shuffled(
      x, [&](auto bits) { return __shfl_xor_sync(kAllLanes, bits, step); });
}
/// The value of the lane `step` before; the first lanes keep their own.
template <typename A>
__device__ __forceinline__ A shuffle_up(A x, int step) {
  return detail::shuffled(
      x, [&](auto bits) { return __shfl_up_sync(kAllLanes, bits, step); });
}
/// The value of one lane.
template <typename A>
__device__ __forceinline__ A shuffle_from(A x, int lane) {
  return detail::shuffled(
      x, [&](auto bits) { return __shfl_sync(kAllLanes, bits, lane); });
}

}  // namespace mlx::core::cuda
