// Reductions along axes and positions of extremes.
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/reduce.h"

namespace mlx::core::cuda {

void reduce(const Reduce& op, const array& x, array& out, Encoder& e);
void arg_reduce(const ArgReduce& op, const array& x, array& out, Encoder& e);

}  // namespace mlx::core::cuda
