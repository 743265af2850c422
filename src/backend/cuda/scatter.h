// Kernels of writing at positions (src/ops/scatter.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/scatter.h"

namespace mlx::core::cuda {

void scatter(
    const Scatter& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);
void scatter_axis(
    const ScatterAxis& op,
    const array& src,
    const array& indices,
    const array& values,
    array& out,
    Encoder& e);
void masked_scatter(
    const MaskedScatter& op,
    const array& src,
    const array& mask,
    const array& rows,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
