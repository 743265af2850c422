// Products.
#include "backend/cuda/device/reduce.cuh"

namespace mlx::core::cuda {

void prod_pass(const ReducePass& pass, Dtype dtype, Encoder& e) {
  arithmetic_pass<Prod>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
