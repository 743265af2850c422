// Turns GGUF's quantized blocks into the affine storage of quantized arrays
// without changing a value: codes packed in 32-bit words, element 0 in the
// lowest bits, and one float16 scale and bias per 32 elements,
// value = code * scale + bias.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/gguf_format.h"

namespace mlx::core::io {

inline constexpr int kGgufGroup = 32;

/// Bits of one code; 0 when the type is not quantized.
int gguf_bits(GgufType type);

/// Repacks `count` blocks: bits words a block into `words`, one float16 (as
/// bits) a block into `scales` and `biases`. False when a bias that follows
/// from the scale (-8 or -128 times) is finite but too large for float16.
bool repack_blocks(
    GgufType type,
    const uint8_t* blocks,
    size_t count,
    uint32_t* words,
    uint16_t* scales,
    uint16_t* biases);

}  // namespace mlx::core::io
