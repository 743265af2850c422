// Sums.
#include "backend/cuda/device/reduce.cuh"

namespace mlx::core::cuda {

void sum_pass(const ReducePass& pass, Dtype dtype, Encoder& e) {
  arithmetic_pass<Sum>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
