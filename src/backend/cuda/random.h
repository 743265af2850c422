// Kernel of random bits (src/random/random_bits.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "random/random_bits.h"

namespace mlx::core::cuda {

void random_bits(
    const RandomBits& op, const array& keys, array& out, Encoder& e);

}  // namespace mlx::core::cuda
