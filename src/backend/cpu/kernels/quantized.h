// Raw loops over quantized matrices (affine: number = code * scale + bias, a
// scale and a bias for each group of 32, 64 or 128 codes of 2, 3, 4, 5, 6 or 8
// bits; codes are a little-endian stream of bits along a row).
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"

namespace mlx::core::cpu {

/// Rows are contiguous and follow each other; cols is a multiple of group_size.
struct QuantizedMatrix {
  const void* codes;
  const void* scales;
  const void* biases;
  Dtype type;  // of scales and biases: float16, bfloat16 or float32
  int bits;
  int group_size;
  int64_t rows;
  int64_t cols;
};

/// Most rows of x that qmv_lines and qvm_cols take.
inline constexpr int64_t kQmvRows = 8;
/// Widest tile of codes; cuts of a row are multiples of it.
inline constexpr int64_t kQuantizedTile = 128;

/// Room for x as qmv_arrange leaves it, in floats: per row, a tile more than
/// the row, and one sum for each group, rounded up.
inline int64_t qmv_arranged_size(int64_t depth) {
  return depth + kQuantizedTile;
}
inline int64_t qmv_sums_size(int64_t depth, int group_size) {
  return (depth / group_size + 7) / 8 * 8;
}
/// Room that qmv_lines needs for scales and biases of eight lines.
inline int64_t qmv_work_size(int64_t depth, int group_size) {
  return 2 * (8 * (depth / group_size) + 8);
}

}  // namespace mlx::core::cpu

/// Quantizes `groups` contiguous groups of w (any real float type; float64 is
/// narrowed). scales and biases have the type of w.
MLX_ISA_KERNEL(
    void,
    quantize_groups,
    (const void* w,
     mlx::core::Dtype type,
     int64_t groups,
     int group_size,
     int bits,
     uint32_t* codes,
     void* scales,
     void* biases))

/// Rows [row, row + rows), columns [col, col + cols) as numbers of `type` at
/// `out`, row after row. col is a multiple of kQuantizedTile, cols one too or
/// up to the end of the row.
MLX_ISA_KERNEL(
    void,
    dequantize_block,
    (const QuantizedMatrix& w,
     int64_t row,
     int64_t rows,
     int64_t col,
     int64_t cols,
     mlx::core::Dtype type,
     void* out))

/// Puts rows <= 8 rows of x (float, contiguous) into the order in which
/// qmv_lines meets the codes, and sums x over groups.
MLX_ISA_KERNEL(
    void,
    qmv_arrange,
    (const float* x,
     int64_t rows,
     int64_t depth,
     int bits,
     int group_size,
     float* arranged,
     float* sums))

/// out[r * out_stride + i] = dot(x[r], w[first + i]) for i < lines.
MLX_ISA_KERNEL(
    void,
    qmv_lines,
    (const QuantizedMatrix& w,
     const float* arranged,
     const float* sums,
     int64_t rows,
     int64_t first,
     int64_t lines,
     float* work,
     float* out,
     int64_t out_stride))

/// out[r * out_stride + i] = sum over k of x[r, k] * w[k, first + i] for
/// i < cols; x is float, `depth` numbers a row. first and cols cut rows as in
/// dequantize_block.
MLX_ISA_KERNEL(
    void,
    qvm_cols,
    (const QuantizedMatrix& w,
     const float* x,
     int64_t rows,
     int64_t first,
     int64_t cols,
     float* out,
     int64_t out_stride))

/// Panels of B for gemm_block: lines are rows of w, start and depth cut rows
/// as in dequantize_block.
MLX_ISA_KERNEL(
    void,
    qmm_pack_rows,
    (const QuantizedMatrix& w,
     int64_t line,
     int64_t lines,
     int64_t start,
     int64_t depth,
     float* panels))

/// The same with lines that are columns of w; any line and lines.
MLX_ISA_KERNEL(
    void,
    qmm_pack_cols,
    (const QuantizedMatrix& w,
     int64_t line,
     int64_t lines,
     int64_t start,
     int64_t depth,
     float* panels))
