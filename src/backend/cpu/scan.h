// Running reductions on the CPU.
#pragma once

#include "ops/scan.h"

namespace mlx::core::cpu {

void scan(const Scan& op, const array& x, array& out);

}  // namespace mlx::core::cpu
