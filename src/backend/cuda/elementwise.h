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

void as_type(const AsType& op, const array& x, array& out, Encoder& e);

}  // namespace mlx::core::cuda
