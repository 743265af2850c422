// Kernels of writing at positions (src/ops/scatter.h).
#pragma once

#include "ops/scatter.h"

namespace mlx::core::cpu {

void scatter(const Scatter& op, const std::vector<array>& inputs, array& out);
void scatter_axis(
    const ScatterAxis& op,
    const array& src,
    const array& indices,
    const array& values,
    array& out);
void masked_scatter(
    const MaskedScatter& op,
    const array& src,
    const array& mask,
    const array& rows,
    array& out);

}  // namespace mlx::core::cpu
