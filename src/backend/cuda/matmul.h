// The matrix product and the product added to a scaled array.
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/matmul.h"

namespace mlx::core::cuda {

void matmul(
    const Matmul& op, const array& a, const array& b, array& out, Encoder& e);
void addmm(
    const AddMM& op,
    const array& a,
    const array& b,
    const array& c,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
