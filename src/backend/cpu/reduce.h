// Reductions and argument reductions on the CPU.
#pragma once

#include "ops/reduce.h"

namespace mlx::core::cpu {

/// Elements of a row that are reduced before anything joins them: a float32
/// block fills 16 KiB.
inline constexpr int64_t kReducedBlock = 4096;

void reduce(const Reduce& op, const array& x, array& out);
void arg_reduce(const ArgReduce& op, const array& x, array& out);

}  // namespace mlx::core::cpu
