// RMS and layer normalisation on the CPU.
#pragma once

#include "fast/norms.h"

namespace mlx::core::cpu {

void rms_norm(
    const fast::RMSNorm& op, const std::vector<array>& inputs, array& out);
void layer_norm(
    const fast::LayerNorm& op, const std::vector<array>& inputs, array& out);

}  // namespace mlx::core::cpu
