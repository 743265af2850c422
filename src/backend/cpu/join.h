// Kernels of joining and constants (src/ops/join.h).
#pragma once

#include "ops/join.h"

namespace mlx::core::cpu {

void concatenate(
    const Concatenate& op, const std::vector<array>& inputs, array& out);
void pad(const Pad& op, const array& x, const array& value, array& out);
void full(const Full& op, const array& value, array& out);
void arange(const Arange& op, const std::vector<array>& inputs, array& out);
void number_of_elements(const NumberOfElements& op, const array& x, array& out);

}  // namespace mlx::core::cpu
