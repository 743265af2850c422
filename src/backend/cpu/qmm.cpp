// Plans products with quantized matrices: few rows go through kernels that read
// the codes once at the speed of memory, many rows through the packed product,
// whose panels are unpacked from the codes.
#include "backend/cpu/qmm.h"

#include <algorithm>

#include "backend/cpu/gemm_driver.h"
#include "backend/cpu/kernels/gemv.h"

namespace mlx::core::cpu {

namespace {

/// Up to here unpacking for each row (or four) beats packing panels.
constexpr int64_t kFewRows = kQmvRows;
/// Bytes of codes per task: at most what stays in L2 for a second pass, at
/// least what is worth a hand-over.
constexpr int64_t kTaskBytes = 64 << 10;
constexpr int64_t kLeastTaskBytes = 8 << 10;
/// Tasks for each thread, so that both end at about the same time.
constexpr int64_t kTasksPerThread = 8;

int64_t result_cols(const QmmArgs& args) {
  return args.transpose ? args.w.rows : args.w.cols;
}
int64_t result_depth(const QmmArgs& args) {
  return args.transpose ? args.w.cols : args.w.rows;
}

GemmProblem as_problem(const QmmArgs& args) {
  return {
      .rows = args.rows,
      .cols = result_cols(args),
      .depth = result_depth(args),
      .wide = false,
      .depth_multiple = args.transpose ? kQuantizedTile : 8,
      .result = {
          .type = args.type,
          .out = args.out,
          .out_stride = result_cols(args),
          .alpha = 1,
          .beta = 0,
          .c = nullptr,
          .c_row_stride = 0,
          .c_col_stride = 0}};
}

GemmSource rows_of_x(const QmmArgs& args) {
  return {args.x, args.row_stride, args.col_stride, args.type};
}

/// x as floats, in scratch of this thread.
float* load_x(const QmmArgs& args, int64_t extra) {
  int64_t depth = result_depth(args);
  float* x = static_cast<float*>(scratch(
      ScratchUse::shared_panels,
      size_t(args.rows * depth + extra) * sizeof(float)));
  gemv_rows(rows_of_x(args), args.rows, depth, x);
  return x;
}

void few_rows_transposed(const QmmArgs& args) {
  const QuantizedMatrix& w = args.w;
  int64_t arranged_size = args.rows * qmv_arranged_size(w.cols);
  int64_t sums_size = args.rows * qmv_sums_size(w.cols, w.group_size);
  float* x = load_x(args, arranged_size + sums_size);
  float* arranged = x + args.rows * w.cols;
  float* sums = arranged + arranged_size;
  qmv_arrange(x, args.rows, w.cols, w.bits, w.group_size, arranged, sums);

  const GemmProblem problem = as_problem(args);
  int64_t line_bytes = w.cols * w.bits / 8;
  int64_t share = w.rows * line_bytes / (num_threads() * kTasksPerThread);
  int64_t task = std::clamp(share, kLeastTaskBytes, kTaskBytes);
  int64_t step = std::clamp<int64_t>(task / line_bytes / 4 * 4, 4, 512);
  int64_t work_size = qmv_work_size(w.cols, w.group_size);
  int64_t tasks = (w.rows + step - 1) / step;
  parallel_for(size_t(tasks), 1, [&](size_t begin, size_t end) {
    float* work = static_cast<float*>(scratch(
        ScratchUse::sums,
        size_t(work_size + step * args.rows) * sizeof(float)));
    float* out = work + work_size;
    for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
      int64_t first = i * step;
      int64_t lines = std::min(step, w.rows - first);
      qmv_lines(w, arranged, sums, args.rows, first, lines, work, out, step);
      gemm_finish(out, step, args.rows, lines, problem.result, 0, first);
    }
  });
}

void few_rows(const QmmArgs& args) {
  const QuantizedMatrix& w = args.w;
  const float* x = load_x(args, 0);
  const GemmProblem problem = as_problem(args);
  int64_t share = w.cols / (2 * num_threads());
  int64_t step = std::clamp<int64_t>(
      (share + kQuantizedTile - 1) / kQuantizedTile * kQuantizedTile,
      kQuantizedTile,
      1024);
  int64_t tasks = (w.cols + step - 1) / step;
  parallel_for(size_t(tasks), 1, [&](size_t begin, size_t end) {
    float* out = static_cast<float*>(
        scratch(ScratchUse::sums, size_t(step * args.rows) * sizeof(float)));
    for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
      int64_t first = i * step;
      int64_t cols = std::min(step, w.cols - first);
      qvm_cols(w, x, args.rows, first, cols, out, step);
      gemm_finish(out, step, args.rows, cols, problem.result, 0, first);
    }
  });
}

void many_rows(const QmmArgs& args) {
  GemmSource x = rows_of_x(args);
  auto pack_w = args.transpose ? qmm_pack_rows.get() : qmm_pack_cols.get();
  run_gemm(
      as_problem(args),
      [&](int64_t line, int64_t lines, int64_t start, int64_t depth, void* to) {
        gemm_pack(x, GemmSide::a, line, lines, start, depth, to);
      },
      [&](int64_t line, int64_t lines, int64_t start, int64_t depth, void* to) {
        pack_w(args.w, line, lines, start, depth, static_cast<float*>(to));
      });
}

}  // namespace

void quantized_matmul(const QmmArgs& args) {
  if (args.rows == 0 || result_cols(args) == 0) {
    return;
  }
  if (result_depth(args) == 0) {
    finish_empty_gemm(as_problem(args));
  } else if (args.rows > kFewRows) {
    many_rows(args);
  } else if (args.transpose) {
    few_rows_transposed(args);
  } else {
    few_rows(args);
  }
}

void dequantize(const QuantizedMatrix& w, Dtype type, void* out) {
  if (w.rows == 0 || w.cols == 0) {
    return;
  }
  // Long rows are cut into tiles, so that one row is work for all threads.
  constexpr int64_t kStep = 32 * kQuantizedTile;
  int64_t parts = (w.cols + kStep - 1) / kStep;
  size_t grain = size_t(std::max<int64_t>(1, 8192 / w.cols));
  parallel_for(size_t(w.rows * parts), grain, [&](size_t begin, size_t end) {
    for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
      int64_t row = i / parts;
      int64_t col = i % parts * kStep;
      dequantize_block(
          w,
          row,
          1,
          col,
          std::min(kStep, w.cols - col),
          type,
          static_cast<char*>(out) + (row * w.cols + col) * type.size());
    }
  });
}

void quantize(
    const void* w,
    Dtype type,
    int64_t groups,
    int group_size,
    int bits,
    uint32_t* codes,
    void* scales,
    void* biases) {
  int64_t size = type.size();
  parallel_for(
      size_t(groups), size_t(4096 / group_size), [&](size_t begin, size_t end) {
        int64_t first = int64_t(begin);
        quantize_groups(
            static_cast<const char*>(w) + first * group_size * size,
            type,
            int64_t(end) - first,
            group_size,
            bits,
            codes + first * (group_size * bits / 32),
            static_cast<char*>(scales) + first * size,
            static_cast<char*>(biases) + first * size);
      });
}

}  // namespace mlx::core::cpu
