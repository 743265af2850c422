// Attention of few rows, float16.
#include "backend/cuda/attention_few.cuh"

namespace mlx::core::cuda {

void attention_few_float16(const AttentionProblem& p, Encoder& e) {
  attention_few_of<half>(p, e);
}

}  // namespace mlx::core::cuda
