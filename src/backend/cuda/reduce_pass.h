// One pass of a reduction: what its kernels are told, and the kernels by
// operation. A reduction that has too few results to fill the device is made
// in two passes: parts, then the parts' results by the same kernels in a fixed
// order.
#pragma once

#include "backend/cuda/device/walk_axes.cuh"
#include "backend/cuda/encoder.h"
#include "mlx/dtype.h"

namespace mlx::core::cuda {

/// A step is a position of the reduced axes, of 16 bytes where packs can be
/// read along the innermost one. Results are numbered in the order of the kept
/// axes and written one after the other; those of parts, blockIdx.y, lie
/// between.
struct ReduceArgs {
  const void* x;
  void* out;
  /// Results are halves of this type, or as they are accumulated.
  enum { accumulated, float16, bfloat16 } out_type;
  /// Whether logic means all rather than any.
  bool is_all;
  bool packed;
  WalkAxes kept;
  WalkAxes reduced;
  /// Positions of `kept`.
  int64_t results;
  int64_t steps;
  int64_t steps_of_part;
  /// Rows: elements behind the last pack.
  int tail;
  /// Columns, which are neighbours, a thread has a pack or one of them: how
  /// many of each, and elements from thread to thread.
  int64_t columns;
  int64_t column_units;
  int64_t column_stride;
  int64_t column_blocks;
  /// Columns: log2 of the threads side by side, and of those that share them.
  int x_bits;
  int y_bits;
};

struct ReducePass {
  ReduceArgs args;
  bool is_rows;
  dim3 grid;
  dim3 block;
};

constexpr int kReduceThreads = 512;
constexpr int kColumnThreads = 256;

void sum_pass(const ReducePass& pass, Dtype dtype, Encoder& e);
void prod_pass(const ReducePass& pass, Dtype dtype, Encoder& e);
void max_pass(const ReducePass& pass, Dtype dtype, Encoder& e);
void min_pass(const ReducePass& pass, Dtype dtype, Encoder& e);
void logic_pass(const ReducePass& pass, Dtype dtype, Encoder& e);

}  // namespace mlx::core::cuda
