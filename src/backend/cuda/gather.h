// Kernels of reading at positions (src/ops/gather.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/gather.h"

namespace mlx::core::cuda {

void gather(
    const Gather& op, const std::vector<array>& inputs, array& out, Encoder& e);
void gather_axis(
    const GatherAxis& op,
    const array& a,
    const array& indices,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
