// Runs elementwise operations and conversions of type over whole arrays, each
// in one launch.
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/elementwise_primitive.h"
#include "ops/views.h"

namespace mlx::core::cuda {

void elementwise(
    const Elementwise& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);

/// Whether a large array of the iteration shape `shape` is better transposed
/// into memory first; `inputs` with those that are.
bool is_transposed(const array& a, const Shape& shape);
std::vector<array> with_rows(
    const std::vector<array>& inputs, const Shape& shape, Encoder& e);

void as_type(const AsType& op, const array& x, array& out, Encoder& e);

}  // namespace mlx::core::cuda
