// NVIDIA GPUs behind backend.h: nodes are launched by the thread that calls
// eval, in the order of their stream, and run when the device comes to them.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/encoder.h"
#include "backend/kernel_table.h"

namespace mlx::core::cuda {

/// The contents page in kernels.cpp.
const KernelTable<Encoder&>& kernels();

}  // namespace mlx::core::cuda
