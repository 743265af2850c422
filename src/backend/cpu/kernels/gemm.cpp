// The product of packed blocks: walks the micro tiles of a block, keeps sums in
// memory between blocks of the depth, and finishes them with the epilogue.
#include "backend/cpu/kernels/gemm.h"

#include <utility>

#include "backend/cpu/kernels/gemm_finish.h"
#include "backend/cpu/kernels/gemm_micro.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename T>
using MicroKernel = void (*)(
    const T* a,
    const T* b,
    MicroStrides strides,
    int64_t depth,
    T* sums,
    int64_t sums_stride,
    bool add);

template <typename T, int Rows>
void packed_tile(
    const T* a,
    const T* b,
    MicroStrides,
    int64_t depth,
    T* sums,
    int64_t sums_stride,
    bool add) {
  micro_tile<T, Rows>(
      a, b, {1, kTileRows, kTileCols<T>}, depth, sums, sums_stride, add);
}

template <typename T, int Rows>
void strided_tile(
    const T* a,
    const T* b,
    MicroStrides strides,
    int64_t depth,
    T* sums,
    int64_t sums_stride,
    bool add) {
  micro_tile<T, Rows>(a, b, strides, depth, sums, sums_stride, add);
}

template <typename T, size_t... I>
MicroKernel<T> pick(bool packed, int64_t rows, std::index_sequence<I...>) {
  static constexpr MicroKernel<T> table[2][kTileRows] = {
      {strided_tile<T, int(I) + 1>...}, {packed_tile<T, int(I) + 1>...}};
  return table[packed][rows - 1];
}

/// The kernel for a tile of `rows` rows, from packed panels or from matrices.
template <typename T>
MicroKernel<T> pick_tile(bool packed, int64_t rows) {
  return pick<T>(packed, rows, std::make_index_sequence<kTileRows>{});
}

int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// A tile that may not write whole rows of sums: it goes through a buffer.
template <typename T>
void buffered_tile(
    const GemmBlock& block,
    const T* a,
    const T* b,
    MicroStrides strides,
    bool packed,
    int64_t row,
    int64_t col) {
  alignas(64) T tile[kTileRows * kTileCols<T>];
  int64_t rows = smaller(block.rows - row, kTileRows);
  int64_t cols = smaller(block.cols - col, kTileCols<T>);
  T* sums = static_cast<T*>(block.sums) + row * block.sums_stride + col;
  pick_tile<T>(packed, rows)(
      a, b, strides, block.depth, tile, kTileCols<T>, false);
  if (!block.first) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        tile[i * kTileCols<T> + j] += sums[i * block.sums_stride + j];
      }
    }
  }
  if (block.epilogue) {
    finish(
        tile,
        kTileCols<T>,
        rows,
        cols,
        *block.epilogue,
        block.first_row + row,
        block.first_col + col);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    __builtin_memcpy(
        sums + i * block.sums_stride,
        tile + i * kTileCols<T>,
        size_t(cols) * sizeof(T));
  }
}

/// One panel of columns from `col` on. b is that panel; a_row is the distance
/// of two tiles of A, divided by the rows of a tile.
template <typename T>
void multiply_panel(
    const GemmBlock& block,
    const T* b,
    MicroStrides strides,
    int64_t a_row,
    bool packed,
    int64_t col) {
  bool whole = block.cols - col >= kTileCols<T> && !block.epilogue;
  for (int64_t row = 0; row < block.rows; row += kTileRows) {
    const T* a = static_cast<const T*>(block.a) + row * a_row;
    if (!whole) {
      buffered_tile<T>(block, a, b, strides, packed, row, col);
      continue;
    }
    pick_tile<T>(packed, smaller(block.rows - row, kTileRows))(
        a,
        b,
        strides,
        block.depth,
        static_cast<T*>(block.sums) + row * block.sums_stride + col,
        block.sums_stride,
        !block.first);
  }
}

template <typename T>
void multiply_packed(const GemmBlock& block) {
  for (int64_t col = 0; col < block.cols; col += kTileCols<T>) {
    const T* b = static_cast<const T*>(block.b) + col * block.depth;
    multiply_panel<T>(block, b, {}, block.depth, true, col);
  }
}

template <typename T>
void multiply_small(
    const GemmBlock& block,
    int64_t a_row,
    int64_t a_depth,
    const GemmSource& b,
    void* panel) {
  constexpr int64_t width = kTileCols<T>;
  for (int64_t col = 0; col < block.cols; col += width) {
    int64_t cols = smaller(block.cols - col, width);
    MicroStrides strides{a_row, a_depth, b.depth_stride};
    const T* from = static_cast<const T*>(b.data) + col;
    if (b.line_stride != 1 || cols < width) {
      gemm_pack(b, GemmSide::b, col, cols, 0, block.depth, panel);
      from = static_cast<const T*>(panel);
      strides.b_depth = width;
    }
    multiply_panel<T>(block, from, strides, a_row, false, col);
  }
}

}  // namespace

GemmBlocking gemm_blocking(bool wide) {
  int64_t cols = wide ? kTileCols<double> : kTileCols<float>;
  int64_t block_rows = kTileRows * (MLX_ISA_LEVEL >= 4 ? 10 : 24);
  return {kTileRows, cols, block_rows, wide ? 192 : 256};
}

void gemm_block(const GemmBlock& block, bool wide) {
  if (wide) {
    multiply_packed<double>(block);
  } else {
    multiply_packed<float>(block);
  }
}

void gemm_small(
    const GemmBlock& block,
    int64_t a_row_stride,
    int64_t a_depth_stride,
    const GemmSource& b,
    void* panel) {
  if (b.type == Dtype::Val::float64) {
    multiply_small<double>(block, a_row_stride, a_depth_stride, b, panel);
  } else {
    multiply_small<float>(block, a_row_stride, a_depth_stride, b, panel);
  }
}

void gemm_finish(
    const void* sums,
    int64_t stride,
    int64_t rows,
    int64_t cols,
    const GemmEpilogue& epilogue,
    int64_t row,
    int64_t col) {
  if (epilogue.type == Dtype::Val::float64) {
    finish(
        static_cast<const double*>(sums),
        stride,
        rows,
        cols,
        epilogue,
        row,
        col);
  } else {
    finish(
        static_cast<const float*>(sums),
        stride,
        rows,
        cols,
        epilogue,
        row,
        col);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
