// Running reductions along an axis.
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/scan.h"

namespace mlx::core::cuda {

void scan(const Scan& op, const array& x, array& out, Encoder& e);

}  // namespace mlx::core::cuda
