// Kernels of the fused operations rope and attention (src/fast).
#pragma once

#include "fast/attention.h"
#include "fast/rope.h"

namespace mlx::core::cpu {

void rope(const fast::RoPE& op, const std::vector<array>& inputs, array& out);

void attention(
    const fast::ScaledDotProductAttention& op,
    const std::vector<array>& inputs,
    array& out);

}  // namespace mlx::core::cpu
