// Where all blocks of a kernel meet. They must run at once.
#pragma once

namespace mlx::core::cuda {

/// One per block. Thread 0 counts: `arrivals` grows by one for each block that
/// comes, over all kernels of a stream, so it is a multiple of the grid before
/// and after each; 64 bits never overflow.
class GridBarrier {
 public:
  __device__ __forceinline__ explicit GridBarrier(unsigned long long* arrivals)
      : arrivals_(arrivals) {
    if (threadIdx.x == 0) {
      // Others may have come already, but not all before this block has.
      unsigned long long now = arrived();
      awaited_ = now - now % gridDim.x;
    }
  }

  /// Says that the block has come: what its threads wrote before a
  /// __syncthreads() is seen by those who wait.
  __device__ __forceinline__ void arrive() {
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(arrivals_)
                   : "memory");
      awaited_ += gridDim.x;
    }
  }

  /// Until all have come.
  __device__ __forceinline__ void wait() {
    if (threadIdx.x == 0) {
      while (arrived() < awaited_) {
      }
    }
    __syncthreads();
  }

 private:
  __device__ __forceinline__ unsigned long long arrived() const {
    unsigned long long now;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                 : "=l"(now)
                 : "l"(arrivals_)
                 : "memory");
    return now;
  }

  unsigned long long* arrivals_;
  unsigned long long awaited_ = 0;
};

}  // namespace mlx::core::cuda
