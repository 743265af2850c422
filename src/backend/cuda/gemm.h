// The matrix product on device addresses: out = alpha * a * b + beta * c for
// float16, bfloat16, float32, float64 and complex64, any strides, batches.
// Sums are float32 (float64 for float64).
#pragma once

#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

/// A batch of matrices; strides in elements, one batch stride per batch axis.
struct GemmOperand {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
  Strides batch_strides = {};
};

struct GemmArgs {
  const char* op;  // for errors
  Dtype type;      // of a, b, c and out
  int64_t rows;
  int64_t cols;
  int64_t depth;
  GemmOperand a;  // rows x depth
  GemmOperand b;  // depth x cols
  void* out;      // batch x rows x cols, contiguous, not overlapping c
  double alpha = 1;
  double beta = 0;
  GemmOperand c = {};  // rows x cols, read only when beta is not 0
  Shape batch_shape = {};
};

void gemm(GemmArgs args, Encoder& e);

}  // namespace mlx::core::cuda
