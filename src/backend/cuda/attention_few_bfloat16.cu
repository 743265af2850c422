// Attention of few rows, bfloat16.
#include "backend/cuda/attention_few.cuh"

namespace mlx::core::cuda {

void attention_few_bfloat16(const AttentionProblem& p, Encoder& e) {
  attention_few_of<bhalf>(p, e);
}

}  // namespace mlx::core::cuda
