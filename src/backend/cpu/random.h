// Kernel of random bits (src/random/random_bits.h).
#pragma once

#include "random/random_bits.h"

namespace mlx::core::cpu {

void random_bits(const RandomBits& op, const array& keys, array& out);

}  // namespace mlx::core::cpu
