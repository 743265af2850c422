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

  /// A block for every row or few: those that begin read while others end.
  /// Fewer that take row after row were a tenth slower, whether they read the
  /// next one ahead or not.
  dim3 grid(int64_t rows) const {
    return dim3(static_cast<unsigned>((rows + block.y - 1) / block.y));
  }
};
RowSplit row_split(int64_t rows, int64_t n, size_t itemsize, bool packed);

/// The most threads of a row that is held, and of one that is walked.
constexpr int kHeldThreads = 512;
/// Registers of a thread of rows that are held: with more, fewer rows are on
/// their way at a time.
constexpr int kHeldRegisters = 64;
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

}  // namespace mlx::core::cuda
