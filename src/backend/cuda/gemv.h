// Products of a matrix and a vector, which read the matrix once at the speed of
// memory, and what products need beside cuBLASLt.
#pragma once

#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

/// out[i] = alpha * sum over k of w[i, k] * x[k] + beta * c[i] for a batch;
/// float16, bfloat16 or float32. Strides in elements.
struct GemvArgs {
  Dtype type;
  int64_t lines;
  int64_t depth;
  const void* w;
  /// From one line to the next when a line's elements lie side by side, else
  /// from one k to the next, and then the lines lie side by side.
  int64_t pitch;
  bool depth_is_inner;
  const void* x;
  int64_t x_stride;
  void* out;  // batch x lines, contiguous
  float alpha;
  float beta;
  const void* c;  // read only when beta is not 0
  int64_t c_stride;
  Shape batch_shape;
  Strides w_batch;
  Strides x_batch;
  Strides c_batch;
};

void gemv(const GemvArgs& args, Encoder& e);

/// to = factor * from for every index of `shape`; `to` is row-major. The types
/// of GemmArgs.
void scaled_copy(
    Dtype type,
    const void* from,
    const Shape& shape,
    const Strides& strides,
    double factor,
    void* to,
    Encoder& e);

}  // namespace mlx::core::cuda
