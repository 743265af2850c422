// Kernels that the user has written (src/fast/custom_kernel.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "fast/custom_kernel.h"

namespace mlx::core::cuda {

void custom_kernel(
    const fast::CustomKernel& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e);

void precompiled_kernel(
    const fast::PrecompiledKernel& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e);

}  // namespace mlx::core::cuda
