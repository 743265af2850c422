// Running reductions: rows, or panels of columns, are spread over the threads.
// Each element moves in and out once.
#include "backend/cpu/scan.h"

#include <algorithm>

#include "backend/cpu/copy.h"
#include "backend/cpu/kernels/scan.h"
#include "backend/cpu/threads.h"
#include "types/error.h"

namespace mlx::core::cpu {

namespace {

// Elements that a thread takes at least.
constexpr size_t kGrain = 16384;
// Columns taken together: 2 KiB of a float32 row.
constexpr size_t kPanel = 512;

ScanFn loop_of(ScanType type, Dtype dtype) {
  switch (type) {
    case ScanType::sum:
      return scan_sum_loop(dtype);
    case ScanType::prod:
      return scan_prod_loop(dtype);
    case ScanType::max:
      return scan_max_loop(dtype);
    case ScanType::min:
      return scan_min_loop(dtype);
    default:
      return scan_logaddexp_loop(dtype);
  }
}

}  // namespace

void scan(const Scan& op, const array& x, array& out) {
  const auto& [type, axis, reverse, inclusive] = op.params();
  ScanFn loop = loop_of(type, x.dtype());
  if (!loop) {
    throw std::runtime_error(
        message("scan", "there is no cpu kernel for ", x.dtype(), "."));
  }
  array in = row_contiguous(x);
  char* to = allocate_output(out);
  if (out.size() == 0) {
    return;
  }
  const char* from = in.data<char>();
  size_t n = x.shape(axis);
  size_t cols = 1;
  for (int i = axis + 1; i < static_cast<int>(x.ndim()); ++i) {
    cols *= x.shape(i);
  }
  size_t panels = (cols + kPanel - 1) / kPanel;
  parallel_for(
      out.size() / (n * cols) * panels,
      std::max<size_t>(1, kGrain / (n * std::min(cols, kPanel))),
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          size_t first = i % panels * kPanel;
          size_t at = (i / panels * n * cols + first) * x.itemsize();
          size_t width = std::min(kPanel, cols - first);
          loop(from + at, to + at, n, width, cols, reverse, inclusive);
        }
      });
}

}  // namespace mlx::core::cpu
