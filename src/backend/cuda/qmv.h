// Products with a quantized matrix for few rows, which read the codes once.
#pragma once

#include "backend/cuda/qmm.h"

namespace mlx::core::cuda {

/// The most rows that are not better served by unpacking the matrix.
constexpr int64_t kQmvRows = 128;
constexpr int64_t kQmvOddRows = 32;  // not 4 or 8 bits
constexpr int64_t kQmvFloatRows = 8;
constexpr int64_t kQvmRows = 4;

/// x w' for x and scales of the type.
void qmv_float16(const QmmArgs& args, Encoder& e);
void qmv_bfloat16(const QmmArgs& args, Encoder& e);
/// The same for 2, 3, 5 and 6 bits.
void qmv_float16_odd(const QmmArgs& args, Encoder& e);
void qmv_bfloat16_odd(const QmmArgs& args, Encoder& e);
/// x w' for float32 x.
void qmv_float32(const QmmArgs& args, Encoder& e);
/// The same for one row and a matrix of many lines, if it takes the operands.
bool qmv_lines_takes(const QmmArgs& args);
void qmv_lines(const QmmArgs& args, Encoder& e);
/// x w.
void qvm(const QmmArgs& args, Encoder& e);

}  // namespace mlx::core::cuda
