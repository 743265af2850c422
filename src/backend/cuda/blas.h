// cuBLASLt: plans of products, found once for every combination of types,
// sizes, layouts and alignments, and their execution.
#pragma once

#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

/// A column-major matrix as it lies in memory, and its repetition.
struct BlasMatrix {
  const void* data = nullptr;
  bool transposed = false;
  int64_t leading = 0;
  int64_t batch_stride = 0;
};

/// d (m x n) = alpha * op(a) (m x k) * op(b) (k x n) + beta * c, where op
/// transposes what is marked so. d is never transposed, and neither is c.
struct BlasProduct {
  const char* op;  // for errors
  Dtype type;
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t count = 1;  // of the batch
  BlasMatrix a;
  BlasMatrix b;
  BlasMatrix c;  // c.data may be that of d; read only when beta is not 0
  BlasMatrix d;
  double alpha = 1;
  double beta = 0;
  /// m numbers added to every column, or nullptr.
  const void* bias = nullptr;
};

/// Whether a kernel was found; with a bias there may be none. Without one that
/// is an error.
bool run_blas(const BlasProduct& product, Encoder& e);

}  // namespace mlx::core::cuda
