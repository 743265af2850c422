// Layout of the blocks (ggml): Q4_0 is a float16 scale d and 16 bytes, value
// (q - 8) d; Q4_1 has d, a float16 minimum m and 16 bytes, value q d + m; in
// both, the low halves of the bytes are elements 0 to 15 and the high halves
// 16 to 31. Q8_0 is d and 32 signed bytes, value q d.
#include "io/gguf_blocks.h"

#include <cmath>
#include <cstring>

#include "mlx/types/half_types.h"

namespace mlx::core::io {

namespace {

/// The low halves of 8 bytes, byte 0 in the lowest bits.
uint32_t gather_nibbles(uint64_t x) {
  x &= 0x0f0f0f0f0f0f0f0f;
  x = (x | (x >> 4)) & 0x00ff00ff00ff00ff;
  x = (x | (x >> 8)) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(x | (x >> 16));
}

void pack_nibbles(const uint8_t* bytes, uint32_t* words) {
  uint64_t halves[2];
  std::memcpy(halves, bytes, sizeof(halves));
  words[0] = gather_nibbles(halves[0]);
  words[1] = gather_nibbles(halves[1]);
  words[2] = gather_nibbles(halves[0] >> 4);
  words[3] = gather_nibbles(halves[1] >> 4);
}

/// float16 bits of `factor` (a power of two) times the float16 `bits`; exact
/// unless it overflows, which clears `fits`.
uint16_t scaled(uint16_t bits, float factor, bool& fits) {
  float value = detail::half_bits_to_float(bits);
  uint16_t result = detail::float_to_half_bits(value * factor);
  bool overflow = (result & 0x7fff) == 0x7c00 && std::isfinite(value);
  fits = fits && !overflow;
  return result;
}

uint16_t half_at(const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

}  // namespace

int gguf_bits(GgufType type) {
  switch (type) {
    case GgufType::q4_0:
    case GgufType::q4_1:
      return 4;
    case GgufType::q8_0:
      return 8;
    default:
      return 0;
  }
}

bool repack_blocks(
    GgufType type,
    const uint8_t* blocks,
    size_t count,
    uint32_t* words,
    uint16_t* scales,
    uint16_t* biases) {
  bool fits = true;
  const size_t stride = gguf_block(type).bytes;
  const size_t block_words = static_cast<size_t>(gguf_bits(type));
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* block = blocks + i * stride;
    uint32_t* out = words + i * block_words;
    scales[i] = half_at(block);
    if (type == GgufType::q4_1) {
      biases[i] = half_at(block + 2);
      pack_nibbles(block + 4, out);
    } else if (type == GgufType::q4_0) {
      biases[i] = scaled(scales[i], -8.0f, fits);
      pack_nibbles(block + 2, out);
    } else {
      biases[i] = scaled(scales[i], -128.0f, fits);
      std::memcpy(out, block + 2, 32);
      for (size_t w = 0; w < 8; ++w) {
        out[w] ^= 0x80808080;  // q + 128, byte by byte
      }
    }
  }
  return fits;
}

}  // namespace mlx::core::io
