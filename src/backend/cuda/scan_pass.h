// One pass of a scan: what its kernels are told, and the kernels by operation.
// Where there are too few rows to fill the device they are cut into chunks,
// and a scan is three passes: the chunks' totals, the scan of these, and the
// scan of each chunk from there on. That reads the input twice; but it is the
// same every time, and the second reading finds part of it in the L2 cache.
// Sums of the usual types take one pass instead.
#pragma once

#include "backend/cuda/encoder.h"
#include "mlx/dtype.h"

namespace mlx::core::cuda {

/// Row-major arrays of rows * n * cols elements, scanned along the second
/// axis, in reverse from its end.
struct ScanArgs {
  const void* x;
  /// Null when only totals are wanted.
  void* y;
  int64_t rows;
  int64_t n;
  int64_t cols;
  /// Elements of a chunk, and their number; the last may be shorter.
  int64_t chunk;
  int64_t chunks;
  /// (rows, chunks, cols) values of the accumulating type: what comes before
  /// each chunk, null for nothing; and each chunk's total.
  const void* before;
  void* totals;
  bool reverse;
  bool inclusive;
  /// Whether packs of 16 bytes can be read along the rows.
  bool packed;
};

struct ScanPass {
  ScanArgs args;
  bool is_rows;
  dim3 grid;
  dim3 block;
};

constexpr int kScanThreads = 256;

/// Running sums of few long rows in one pass, where the type's total fits a
/// word that blocks hand on; says whether it did.
bool scan_long_sum(const ScanArgs& args, Dtype dtype, Encoder& e);

void scan_sum_pass(const ScanPass& pass, Dtype dtype, Encoder& e);
void scan_prod_pass(const ScanPass& pass, Dtype dtype, Encoder& e);
void scan_max_pass(const ScanPass& pass, Dtype dtype, Encoder& e);
void scan_min_pass(const ScanPass& pass, Dtype dtype, Encoder& e);
void scan_logaddexp_pass(const ScanPass& pass, Dtype dtype, Encoder& e);

}  // namespace mlx::core::cuda
