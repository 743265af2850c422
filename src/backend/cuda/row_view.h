// How kernels that work on whole rows (softmax, norms) see an array and share
// it out over threads.
#pragma once

#include <type_traits>

#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

/// Rows along the last axis, whose elements are neighbours in memory. A view
/// whose rows do not lie at equal distances is copied.
struct RowView {
  array data;
  int64_t rows;
  int64_t n;
  /// From row to row, in elements.
  int64_t pitch;

  /// Whether every row begins at a multiple of 16 bytes and consists of whole
  /// packs of that size.
  bool is_packed(const void* address) const;
};
RowView row_view(const array& x, Encoder& e);

/// block.x threads share a row, block.y rows a block. Rows that are packed and
/// not too long are held in registers, `packs` packs of 16 bytes a thread;
/// others (`packs` is 0) are walked in steps of a pack a thread.
struct RowSplit {
  int packs;
  dim3 block;

  int64_t blocks(int64_t rows) const { return (rows + block.y - 1) / block.y; }
};
RowSplit row_split(int64_t rows, int64_t n, size_t itemsize, bool packed);

/// The most threads of a row that is held, and of one that is walked.
constexpr int kHeldThreads = 512;
/// Registers of a thread of rows that are held: more make ptxas keep what it
/// could compute again, fewer put off the loads of the next row.
constexpr int kHeldRegisters = 72;
constexpr int kWalkThreads = 1024;

/// Calls f(std::integral_constant<int, packs>()).
template <typename F>
void visit_packs(int packs, F&& f) {
  switch (packs) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    default:
      return f(std::integral_constant<int, 4>());
  }
}

/// Whether blocks take row after row, reading the next while they work on one;
/// else each takes one, and others that run beside it read meanwhile.
constexpr bool kRowsInTurn = true;

/// Blocks for a kernel whose blocks take row after row: as many as run at
/// once, so that all end together.
template <typename... P>
dim3 row_grid(void (*kernel)(P...), const RowSplit& split, int64_t rows) {
  int64_t blocks = split.blocks(rows);
  int64_t processors = device_facts().multiprocessors;
  if (kRowsInTurn && blocks > 2 * processors) {
    int at_once = 0;
    check(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &at_once,
            reinterpret_cast<const void*>(kernel),
            static_cast<int>(split.block.x * split.block.y),
            0),
        "asking for the occupancy");
    int64_t most = processors * (at_once > 0 ? at_once : 1);
    blocks = blocks < most ? blocks : most;
  }
  return dim3(static_cast<unsigned>(blocks));
}

}  // namespace mlx::core::cuda
