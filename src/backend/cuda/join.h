// Kernels of joining (src/ops/join.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/join.h"

namespace mlx::core::cuda {

void concatenate(
    const Concatenate& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);
void pad(
    const Pad& op, const array& x, const array& value, array& out, Encoder& e);

}  // namespace mlx::core::cuda
