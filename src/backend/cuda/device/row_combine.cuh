// The combination of one value of each of the threads that share a row
// (threadIdx.x of blockDim.x; threadIdx.y is another row).
#pragma once

#include "backend/cuda/device/shuffle.cuh"

namespace mlx::core::cuda {

struct LargerOf {
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return b > a ? b : a;
  }
};
struct SumOf {
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return a + b;
  }
};

/// Combines a value of each of the row's threads; all get the result. All
/// threads of the block must call it. Rows of more than a warp have the block
/// for themselves. Two places in shared memory are used in turn, so that one
/// barrier a combination is enough.
template <typename A>
struct RowCombiner {
  A* shared;  // 64 of them
  int turn = 0;

  explicit __device__ __forceinline__ RowCombiner(A* shared) : shared(shared) {}

  template <typename Op>
  __device__ __forceinline__ A operator()(A x, A neutral, Op op) {
    int width = static_cast<int>(blockDim.x);
    if (width < 32) {
      for (int step = width / 2; step > 0; step /= 2) {
        x = op(x, shuffle_xor(x, step));
      }
      return x;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      x = op(x, shuffle_xor(x, step));
    }
    if (width == 32) {
      return x;
    }
    A* slots = shared + turn;
    turn ^= 32;
    int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
      slots[threadIdx.x / 32] = x;
    }
    __syncthreads();
    if (width <= 128) {
      // Four at once have less latency than shuffles.
      x = op(slots[0], slots[1]);
      A y = width > 64 ? slots[2] : neutral;
      A z = width > 96 ? slots[3] : neutral;
      return op(x, op(y, z));
    }
    x = lane < width / 32 ? slots[lane] : neutral;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      x = op(x, shuffle_xor(x, step));
    }
    return x;
  }
};

}  // namespace mlx::core::cuda
