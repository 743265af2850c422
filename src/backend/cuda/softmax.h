// Softmax and log-sum-exp of the last axis.
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/softmax.h"

namespace mlx::core::cuda {

void softmax(const Softmax& op, const array& x, array& out, Encoder& e);
void logsumexp(const LogSumExp& op, const array& x, array& out, Encoder& e);

}  // namespace mlx::core::cuda
