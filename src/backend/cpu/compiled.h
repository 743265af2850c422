// Runs fused programs: all their steps on one block of elements after the
// other, so that memory sees only inputs and outputs.
#pragma once

#include <vector>

#include "ops/compiled.h"

namespace mlx::core::cpu {

void compiled(
    const Compiled& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs);

}  // namespace mlx::core::cpu
