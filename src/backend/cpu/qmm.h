// The product with a quantized matrix on raw pointers: x @ w^T or x @ w.
#pragma once

#include "backend/cpu/kernels/quantized.h"

namespace mlx::core::cpu {

struct QmmArgs {
  QuantizedMatrix
      w;  // transpose: cols x depth of the product, else depth x cols
  bool transpose;
  const void* x;  // rows x depth, strides in elements
  int64_t row_stride;
  int64_t col_stride;
  Dtype type;  // of x and out: float16, bfloat16 or float32
  int64_t rows;
  void* out;  // rows x cols, contiguous
};

/// Sums in float32; x is not rounded. The order of sums depends on the shape
/// only, not on the threads.
void quantized_matmul(const QmmArgs& args);

/// All numbers of a quantized matrix, row after row.
void dequantize(const QuantizedMatrix& w, Dtype type, void* out);

/// Quantizes `groups` contiguous groups; see quantize_groups.
void quantize(
    const void* w,
    Dtype type,
    int64_t groups,
    int group_size,
    int bits,
    uint32_t* codes,
    void* scales,
    void* biases);

}  // namespace mlx::core::cpu
