// Softmax and log-sum-exp of the last axis on the CPU.
#pragma once

#include "ops/softmax.h"

namespace mlx::core::cpu {

void softmax(const Softmax& op, const array& x, array& out);
void logsumexp(const LogSumExp& op, const array& x, array& out);

}  // namespace mlx::core::cpu
