// Attention of few rows, float32.
#include "backend/cuda/attention_few_lanes.cuh"

namespace mlx::core::cuda {

void attention_few_float32(const AttentionProblem& p, Encoder& e) {
  if (is_packed(p)) {
    attention_by_lanes<float, true>(p, e);
  } else {
    attention_by_lanes<float, false>(p, e);
  }
}

}  // namespace mlx::core::cuda
