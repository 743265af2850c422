// Running reductions: how they are laid over blocks, and the three passes of
// long rows.
#include <algorithm>

#include "backend/cuda/copy.h"
#include "backend/cuda/scan.h"
#include "backend/cuda/scan_pass.h"
#include "backend/cuda/work_split.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

// Rows of up to so many elements are one thread's.
constexpr int64_t kShortRow = 16;

void launch_pass(ScanType type, const ScanPass& pass, Dtype dtype, Encoder& e) {
  switch (type) {
    case ScanType::sum:
      return scan_sum_pass(pass, dtype, e);
    case ScanType::prod:
      return scan_prod_pass(pass, dtype, e);
    case ScanType::max:
      return scan_max_pass(pass, dtype, e);
    case ScanType::min:
      return scan_min_pass(pass, dtype, e);
    default:
      return scan_logaddexp_pass(pass, dtype, e);
  }
}

dim3 grid_of(int64_t blocks) {
  return dim3(static_cast<unsigned>(blocks));
}

// As many chunks as fill the device twice, of two tiles at least.
void cut_rows(ScanArgs& a, int64_t tile) {
  int64_t wanted = int64_t(16) * device_facts().multiprocessors;
  a.chunk = a.n;
  if (4 * a.rows < wanted && a.n >= 4 * tile) {
    int64_t chunks = std::min(ceil_div(wanted, a.rows), a.n / (2 * tile));
    a.chunk = ceil_div(ceil_div(a.n, chunks), tile) * tile;
  }
  a.chunks = ceil_div(a.n, a.chunk);
}

// The same for threads, of 32 elements at least.
void cut_columns(ScanArgs& a) {
  int64_t threads = a.rows * a.cols;
  a.chunk = a.n;
  if (threads < device_threads() && a.n >= 64) {
    int64_t chunks =
        std::min(ceil_div(2 * device_threads(), threads), a.n / 32);
    a.chunk = ceil_div(a.n, chunks);
  }
  a.chunks = ceil_div(a.n, a.chunk);
}

// Whether packs of 16 bytes can be read along the rows.
bool is_packed(const ScanArgs& a, int64_t itemsize) {
  return reinterpret_cast<uintptr_t>(a.x) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(a.y) % 16 == 0 &&
         (a.n * itemsize % 16 == 0 || (a.rows == 1 && !a.reverse));
}

ScanPass rows_pass(const ScanArgs& a, int64_t itemsize) {
  int64_t pack = 16 / itemsize;
  // As the kernel has it: 16 elements a thread, 8 of 64 bits.
  int64_t tile = kScanThreads * (pack > 4 ? 16 : 4 * pack);
  ScanPass pass{a, true, {}, {}};
  cut_rows(pass.args, tile);
  int64_t items = a.rows * pass.args.chunks;
  if (a.n <= tile / 4) {
    pass.block = dim3(32, kScanThreads / 32);
  } else {
    pass.block = dim3(kScanThreads);
  }
  pass.grid = grid_of(ceil_div(items, pass.block.y));
  return pass;
}

ScanPass columns_pass(const ScanArgs& a) {
  ScanPass pass{a, false, {}, dim3(kScanThreads)};
  cut_columns(pass.args);
  pass.grid =
      grid_of(ceil_div(a.rows * pass.args.chunks * a.cols, kScanThreads));
  return pass;
}

void scan_into(ScanType type, const ScanArgs& args, Dtype dtype, Encoder& e) {
  bool is_rows = args.cols == 1 && args.n > kShortRow;
  auto itemsize = static_cast<int64_t>(dtype.size());
  ScanArgs whole = args;
  whole.packed = is_packed(args, itemsize);
  if (type == ScanType::sum && scan_long_sum(whole, dtype, e)) {
    return;
  }
  ScanPass pass = is_rows ? rows_pass(whole, itemsize) : columns_pass(args);
  ScanArgs& a = pass.args;
  if (a.chunks == 1) {
    launch_pass(type, pass, dtype, e);
    return;
  }
  bool is_half = dtype == float16 || dtype == bfloat16;
  Dtype wide = is_half ? float32 : dtype;
  Scratch totals = e.scratch(a.rows * a.chunks * a.cols * wide.size());
  a.totals = totals.get();
  launch_pass(type, pass, dtype, e);

  ScanArgs inner{};
  inner.x = totals.get();
  inner.y = totals.get();
  inner.rows = a.rows;
  inner.n = a.chunks;
  inner.cols = a.cols;
  scan_into(type, inner, wide, e);

  a.totals = nullptr;
  a.before = totals.get();
  launch_pass(type, pass, dtype, e);
}

}  // namespace

void scan(const Scan& op, const array& x, array& out, Encoder& e) {
  const auto& [type, axis, reverse, inclusive] = op.params();
  if (type == ScanType::logaddexp && !issubdtype(x.dtype(), inexact)) {
    invalid(
        "scan",
        "type not accepted by logcumsumexp: ",
        x.dtype(),
        ". Expected a floating type.");
  }
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  array in = row_contiguous(x, e);
  ScanArgs a{};
  a.x = e.in(in);
  a.y = e.out(out);
  a.n = x.shape(axis);
  a.cols = 1;
  for (int i = axis + 1; i < static_cast<int>(x.ndim()); ++i) {
    a.cols *= x.shape(i);
  }
  a.rows = static_cast<int64_t>(out.size()) / (a.n * a.cols);
  a.reverse = reverse;
  a.inclusive = inclusive;
  scan_into(type, a, x.dtype(), e);
}

}  // namespace mlx::core::cuda
