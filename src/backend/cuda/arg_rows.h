// Searches for the extreme element of rows whose elements are neighbours.
#pragma once

#include "backend/cuda/device/walk_axes.cuh"
#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

struct ArgRows {
  /// Begins at a multiple of 16 bytes, as do all rows.
  const void* x;
  WalkAxes kept;
  int64_t rows;
  int64_t n;
  /// Elements that one block searches, whole packs of 16 bytes.
  int64_t n_of_part;
  /// The position of the extreme in each part of each row.
  uint32_t* out;
  bool largest;
};

/// In how many parts rows should be searched: one where that is as quick.
int64_t arg_row_parts(int64_t rows, int64_t n, Dtype dtype);

/// Of all types but bool and complex64.
void arg_rows(const ArgRows& a, Dtype dtype, Encoder& e);

}  // namespace mlx::core::cuda
