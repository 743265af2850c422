// Kernels of arrays that come from no other (src/ops/join.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/join.h"

namespace mlx::core::cuda {

void full(const Full& op, const array& value, array& out, Encoder& e);
void arange(
    const Arange& op, const std::vector<array>& none, array& out, Encoder& e);
void number_of_elements(
    const NumberOfElements& op, const array& x, array& out, Encoder& e);

}  // namespace mlx::core::cuda
