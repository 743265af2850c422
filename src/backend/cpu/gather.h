// Kernels of reading at positions (src/ops/gather.h).
#pragma once

#include "ops/gather.h"

namespace mlx::core::cpu {

void gather(const Gather& op, const std::vector<array>& inputs, array& out);
void gather_axis(
    const GatherAxis& op, const array& a, const array& indices, array& out);

}  // namespace mlx::core::cpu
