// Rows of arrays and how many threads take one.
#include "backend/cuda/row_view.h"

#include <algorithm>

#include "backend/cuda/copy.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cuda {

bool RowView::is_packed(const void* address) const {
  auto item = static_cast<int64_t>(data.itemsize());
  return reinterpret_cast<uintptr_t>(address) % 16 == 0 && n * item % 16 == 0 &&
         (rows == 1 || pitch * item % 16 == 0);
}

RowView row_view(const array& x, Encoder& e) {
  int64_t n = x.shape(-1);
  auto rows = static_cast<int64_t>(x.size()) / n;
  if (!x.flags().row_contiguous && (n == 1 || x.strides(-1) == 1)) {
    Shape outer(x.shape().begin(), x.shape().end() - 1);
    Strides strides(x.strides().begin(), x.strides().end() - 1);
    auto [sizes, merged] = collapse_contiguous_dims(outer, strides);
    if (sizes.size() == 1) {
      return {x, rows, n, rows == 1 ? n : merged[0]};
    }
  }
  return {row_contiguous(x, e), rows, n, n};
}

RowSplit row_split(int64_t rows, int64_t n, size_t itemsize, bool packed) {
  int64_t pack = 16 / static_cast<int64_t>(itemsize);
  int64_t total = (n + pack - 1) / pack;
  bool is_held = packed && total <= 4 * kHeldThreads;
  // Few rows want many threads each; of many, fewer threads wait for each
  // other: a warp's do not at all.
  bool is_few = rows < 4 * device_facts().multiprocessors;
  int64_t target = is_few ? kHeldThreads : 32;
  int64_t packs = total <= target ? 1 : total <= 2 * target ? 2 : 4;
  int64_t width = is_held ? (total + packs - 1) / packs
                          : std::min<int64_t>(total, kWalkThreads);
  int of_thread = is_held ? static_cast<int>(packs) : 0;
  if (width > 32) {
    width = (width + 31) / 32 * 32;
    return {of_thread, dim3(static_cast<unsigned>(width))};
  }
  unsigned lanes = 1;
  while (lanes < width) {
    lanes *= 2;
  }
  return {of_thread, dim3(lanes, 128 / lanes)};
}

}  // namespace mlx::core::cuda
