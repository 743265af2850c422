// Quantized matrices as two of a half type, for products as exact as float32's.
#pragma once

#include "backend/cuda/qmm.h"

namespace mlx::core::cuda {

/// Writes w as a matrix of twice the depth: every number as what its half type
/// makes of it and what that leaves over. The depth is that of the product:
/// rows of w with `transpose` hold 32 numbers, then what these leave over;
/// without, the rows of remainders follow.
void dequantize_split(
    const QuantizedMatrix& w, bool transpose, void* out, Encoder& e);

/// Writes x so that it meets such a matrix: every number twice, row-major.
void repeat_for_split(const QmmArgs& args, void* out, Encoder& e);

}  // namespace mlx::core::cuda
