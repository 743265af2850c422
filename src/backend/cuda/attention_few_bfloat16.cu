// Attention of few rows, bfloat16.
#include "backend/cuda/attention_few_lanes.cuh"
#include "backend/cuda/attention_few_tensor.cuh"

namespace mlx::core::cuda {

void attention_few_bfloat16(const AttentionProblem& p, Encoder& e) {
  if (is_packed(p)) {
    attention_by_tensor<bhalf>(p, e);
  } else {
    attention_by_lanes<bhalf, false>(p, e);
  }
}

}  // namespace mlx::core::cuda
