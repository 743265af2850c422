// Runs elementwise operations over whole arrays, in blocks that stay in the
// first cache.
#pragma once

#include "ops/elementwise_primitive.h"
#include "ops/views.h"

namespace mlx::core::cpu {

void elementwise(
    const Elementwise& op, const std::vector<array>& inputs, array& out);

void as_type(const AsType& op, const array& x, array& out);

}  // namespace mlx::core::cpu
