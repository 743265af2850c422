// The product with a quantized matrix on device addresses.
#pragma once

#include "backend/cuda/quantized_matrix.h"

namespace mlx::core::cuda {

/// out = x w' (transpose) or x w; out is row-major and of x's type, which is
/// that of the scales or float32.
struct QmmArgs {
  QuantizedMatrix w;
  bool transpose;
  const void* x;
  int64_t row_stride;  // in elements
  int64_t col_stride;
  Dtype type;
  int64_t rows;
  void* out;

  int64_t cols() const { return transpose ? w.rows : w.cols; }
  int64_t depth() const { return transpose ? w.cols : w.rows; }
};

void quantized_matmul(const QmmArgs& args, Encoder& e);

}  // namespace mlx::core::cuda
