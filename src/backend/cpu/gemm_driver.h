// Cuts a matrix product into tasks for the thread pool. Generic in where the
// panels come from, so that quantized weights or convolution patches go
// straight into them:
//
//   pack_a(line, lines, start, depth, to), pack_b(line, lines, start, depth,
//   to)
//
// write panels as gemm_pack does. The rows of A are packed once, all of the
// depth; then each task takes a block of rows and a strip of columns, packs
// its part of B block by block of the depth, and adds up. The depth is cut the
// same way whatever the number of threads, so results do not depend on it.
#pragma once

#include <algorithm>

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

/// A product in real units: complex64 counts twice in cols and depth.
struct GemmProblem {
  int64_t rows;
  int64_t cols;
  int64_t depth;
  bool wide;  // sums are double
  /// Blocks of the depth begin at multiples of this.
  int64_t depth_multiple = 8;
  /// Where results go; type float64 exactly when wide.
  GemmEpilogue result;
};

/// How a product is cut up.
struct GemmPlan {
  GemmBlocking blocking;
  int64_t block_depth;  // of each block but the last
  int64_t pack_rows;    // rows packed at a time, all of the depth
  int64_t task_rows;
  int64_t task_cols;
};

/// Throws nothing; rows, cols and depth must be positive.
GemmPlan plan_gemm(const GemmProblem& problem, int threads);

/// What is left to do when the depth is zero: out = beta * c.
void finish_empty_gemm(const GemmProblem& problem);

namespace detail {

struct GemmTask {
  int64_t row;  // within the packed rows
  int64_t rows;
  int64_t col;
  int64_t cols;
};

/// Whether sums can be kept in the result itself and need no last step.
bool sums_are_results(const GemmProblem& problem);

template <typename PackB>
void run_gemm_task(
    const GemmProblem& problem,
    const GemmPlan& plan,
    const char* packed_a,
    int64_t packed_rows,
    int64_t first_row,
    const GemmTask& task,
    PackB& pack_b) {
  const int64_t size = problem.wide ? sizeof(double) : sizeof(float);
  const bool direct = sums_are_results(problem);
  const bool one_block = problem.depth <= plan.block_depth;
  char* sums = nullptr;
  int64_t stride = plan.task_cols;
  if (direct) {
    stride = problem.result.out_stride;
    sums = static_cast<char*>(problem.result.out) +
           ((first_row + task.row) * stride + task.col) * size;
  } else if (!one_block) {
    sums = static_cast<char*>(scratch(
        ScratchUse::sums, size_t(plan.task_rows * plan.task_cols * size)));
  }
  int64_t strip = (task.cols + plan.blocking.cols - 1) / plan.blocking.cols *
                  plan.blocking.cols;
  void* panels = scratch(
      ScratchUse::panels,
      size_t(strip * std::min(plan.block_depth, problem.depth) * size));
  for (int64_t k = 0; k < problem.depth; k += plan.block_depth) {
    int64_t depth = std::min(plan.block_depth, problem.depth - k);
    bool last = k + depth == problem.depth;
    pack_b(task.col, task.cols, k, depth, panels);
    const char* a = packed_a + k * packed_rows * size;
    int64_t step = plan.blocking.block_rows;
    for (int64_t row = 0; row < task.rows; row += step) {
      gemm_block(
          {.a = a + (task.row + row) * depth * size,
           .b = panels,
           .rows = std::min(step, task.rows - row),
           .cols = task.cols,
           .depth = depth,
           .sums = sums ? sums + row * stride * size : nullptr,
           .sums_stride = stride,
           .first = k == 0,
           .epilogue = last && !direct ? &problem.result : nullptr,
           .first_row = first_row + task.row + row,
           .first_col = task.col},
          problem.wide);
    }
  }
}

}  // namespace detail

template <typename PackA, typename PackB>
void run_gemm(const GemmProblem& problem, PackA&& pack_a, PackB&& pack_b) {
  if (problem.rows == 0 || problem.cols == 0) {
    return;
  }
  if (problem.depth == 0) {
    finish_empty_gemm(problem);
    return;
  }
  const GemmPlan plan = plan_gemm(problem, num_threads());
  const int64_t size = problem.wide ? sizeof(double) : sizeof(float);
  const int64_t tile_rows = plan.blocking.rows;
  for (int64_t first = 0; first < problem.rows; first += plan.pack_rows) {
    int64_t rows = std::min(plan.pack_rows, problem.rows - first);
    int64_t panels = (rows + tile_rows - 1) / tile_rows;
    int64_t packed_rows = panels * tile_rows;
    char* packed = static_cast<char*>(scratch(
        ScratchUse::shared_panels, size_t(packed_rows * problem.depth * size)));
    int64_t blocks = (problem.depth + plan.block_depth - 1) / plan.block_depth;
    size_t grain =
        size_t(std::max<int64_t>(1, 16384 / (tile_rows * plan.block_depth)));
    parallel_for(size_t(panels * blocks), grain, [&](size_t begin, size_t end) {
      for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
        int64_t k = i / panels * plan.block_depth;
        int64_t row = i % panels * tile_rows;
        int64_t depth = std::min(plan.block_depth, problem.depth - k);
        pack_a(
            first + row,
            std::min(tile_rows, rows - row),
            k,
            depth,
            packed + (k * packed_rows + row * depth) * size);
      }
    });
    int64_t strips = (problem.cols + plan.task_cols - 1) / plan.task_cols;
    int64_t parts = (rows + plan.task_rows - 1) / plan.task_rows;
    parallel_for(size_t(strips * parts), 1, [&](size_t begin, size_t end) {
      for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
        int64_t row = i % parts * plan.task_rows;
        int64_t col = i / parts * plan.task_cols;
        detail::run_gemm_task(
            problem,
            plan,
            packed,
            packed_rows,
            first,
            {row,
             std::min(plan.task_rows, rows - row),
             col,
             std::min(plan.task_cols, problem.cols - col)},
            pack_b);
      }
    });
  }
}

}  // namespace mlx::core::cpu
