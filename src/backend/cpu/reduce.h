// Reductions and argument reductions on the CPU.
#pragma once

#include "ops/reduce.h"

namespace mlx::core::cpu {

void reduce(const Reduce& op, const array& x, array& out);
void arg_reduce(const ArgReduce& op, const array& x, array& out);

}  // namespace mlx::core::cpu
