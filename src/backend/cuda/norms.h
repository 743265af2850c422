// Normalisation of the last axis.
#pragma once

#include "backend/cuda/encoder.h"
#include "fast/norms.h"

namespace mlx::core::cuda {

void rms_norm(
    const fast::RMSNorm& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);
void layer_norm(
    const fast::LayerNorm& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
