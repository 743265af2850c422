// Minima.
#include "backend/cuda/device/reduce.cuh"

namespace mlx::core::cuda {

void min_pass(const ReducePass& pass, Dtype dtype, Encoder& e) {
  extreme_pass<Min>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
