// Matrix products of arrays.
#pragma once

#include "ops/matmul.h"

namespace mlx::core::cpu {

void matmul(const Matmul&, const array& a, const array& b, array& out);
void addmm(
    const AddMM& op,
    const array& a,
    const array& b,
    const array& c,
    array& out);

}  // namespace mlx::core::cpu
