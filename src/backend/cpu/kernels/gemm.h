// Raw loops of the matrix product: packing of panels and the product of two
// packed blocks. src/backend/cpu/gemm.cpp cuts a product into such blocks.
//
// All arithmetic is real. float16 and bfloat16 become float32 while packing.
// complex64 is the real product of twice the depth and twice the columns:
//   (re im) * | re  im |  so A is read as floats along its depth, and every
//             |-im  re |  number of B becomes a 2 x 2 block while packing.
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"

namespace mlx::core::cpu {

/// Sizes of blocks at the current level. A micro tile is `rows` x `cols` sums
/// in registers; a block of A of `block_rows` x `block_depth` fits half of a
/// 512 KiB L2 cache, a panel of B of `cols` x `block_depth` half of L1.
struct GemmBlocking {
  int64_t rows;
  int64_t cols;
  int64_t block_rows;
  int64_t block_depth;
};

enum class GemmSide { a, b };

/// A matrix seen along lines (rows of A, columns of B), strides in elements.
struct GemmSource {
  const void* data;
  int64_t line_stride;
  int64_t depth_stride;
  Dtype type;
};

/// What is done with finished sums: out = alpha * sum + beta * c.
struct GemmEpilogue {
  Dtype type;  // of out and c
  void* out;
  int64_t out_stride;
  double alpha;
  double beta;
  const void* c;  // not read when beta is 0
  int64_t c_row_stride;
  int64_t c_col_stride;
};

/// The product of a packed block of A and a packed strip of B.
struct GemmBlock {
  const void* a;
  const void* b;
  int64_t rows;
  int64_t cols;
  int64_t depth;
  void* sums;  // float or double, row major
  int64_t sums_stride;
  bool first;  // write sums instead of adding to them
  // On the last block of the depth: where the results go and the place of this
  // block in it. Null: results stay in sums.
  const GemmEpilogue* epilogue;
  int64_t first_row;
  int64_t first_col;
};

}  // namespace mlx::core::cpu

/// Blocking for sums in double (`wide`) or float.
MLX_ISA_KERNEL(GemmBlocking, gemm_blocking, (bool wide))

/// Packs lines [line, line + lines) of depth [start, start + depth) into
/// panels of as many lines as the micro tile has on this side: for each panel,
/// for each depth, one number per line. Lines missing in the last panel hold
/// arbitrary numbers. complex64 counts in real units (see above).
MLX_ISA_KERNEL(
    void,
    gemm_pack,
    (const GemmSource& source,
     GemmSide side,
     int64_t line,
     int64_t lines,
     int64_t start,
     int64_t depth,
     void* panels))

MLX_ISA_KERNEL(void, gemm_block, (const GemmBlock& block, bool wide))

/// A product small enough to stay in L1: float32 or float64, A (block.a) is
/// read where it is, B too where its columns lie side by side. `panel` is room
/// for one panel of B.
MLX_ISA_KERNEL(
    void,
    gemm_small,
    (const GemmBlock& block,
     int64_t a_row_stride,
     int64_t a_depth_stride,
     const GemmSource& b,
     void* panel))

/// out[row:, col:] = alpha * sums[0:rows, 0:cols] + beta * c.
MLX_ISA_KERNEL(
    void,
    gemm_finish,
    (const void* sums,
     int64_t stride,
     int64_t rows,
     int64_t cols,
     const GemmEpilogue& epilogue,
     int64_t row,
     int64_t col))
