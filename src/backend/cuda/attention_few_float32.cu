// Attention of few rows, float32.
#include "backend/cuda/attention_few.cuh"

namespace mlx::core::cuda {

void attention_few_float32(const AttentionProblem& p, Encoder& e) {
  attention_few_of<float>(p, e);
}

}  // namespace mlx::core::cuda
