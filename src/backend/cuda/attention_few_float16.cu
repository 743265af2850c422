// Attention of few rows, float16.
#include "backend/cuda/attention_few_lanes.cuh"
#include "backend/cuda/attention_few_tensor.cuh"

namespace mlx::core::cuda {

void attention_few_float16(const AttentionProblem& p, Encoder& e) {
  if (is_packed(p)) {
    attention_by_tensor<half>(p, e);
  } else {
    attention_by_lanes<half, false>(p, e);
  }
}

}  // namespace mlx::core::cuda
