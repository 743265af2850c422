// A quantized matrix on the device, for the kernels that read one.
#pragma once

#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

/// Row-major; a number is code * scale + bias of its group, which lies along a
/// row. Codes are packed lowest bits first, 32 of them in `bits` words.
struct QuantizedMatrix {
  const uint32_t* codes;
  const void* scales;
  const void* biases;
  Dtype type;  // of scales and biases
  int bits;
  int group_size;
  int64_t rows;
  int64_t cols;

  /// How many times so many codes a group has, as a power of two.
  int group_shift(int codes) const {
    int shift = 0;
    while ((codes << shift) < group_size) {
      ++shift;
    }
    return shift;
  }
};

/// Writes the numbers, row-major, as `type`: that of the scales, or float32.
void dequantize(const QuantizedMatrix& w, Dtype type, void* out, Encoder& e);

}  // namespace mlx::core::cuda
