// Rotary position encoding.
#pragma once

#include "backend/cuda/encoder.h"
#include "fast/rope.h"

namespace mlx::core::cuda {

void rope(
    const fast::RoPE& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
