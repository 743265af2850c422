// Maxima.
#include "backend/cuda/device/reduce.cuh"

namespace mlx::core::cuda {

void max_pass(const ReducePass& pass, Dtype dtype, Encoder& e) {
  extreme_pass<Max>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
