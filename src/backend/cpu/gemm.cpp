// Plans and runs matrix products: merges batch axes, picks between the packed
// product and the kernels for skinny and small shapes, and spreads either the
// batch or the blocks of one product over the threads.
#include "backend/cpu/gemm.h"

#include <algorithm>

#include "backend/cpu/gemm_driver.h"
#include "backend/cpu/kernels/gemv.h"

namespace mlx::core::cpu {

namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

/// Panels of A that stay in the last-level cache while all columns pass by.
constexpr int64_t kPackedBytes = int64_t(16) << 20;
/// Flops worth a task of its own: about 10 us.
constexpr int64_t kTaskFlops = int64_t(1) << 20;

}  // namespace

GemmPlan plan_gemm(const GemmProblem& problem, int threads) {
  GemmPlan plan;
  plan.blocking = gemm_blocking(problem.wide);
  int64_t tile_rows = plan.blocking.rows;
  int64_t tile_cols = plan.blocking.cols;
  int64_t blocks = ceil_div(problem.depth, plan.blocking.block_depth);
  plan.block_depth =
      round_up(ceil_div(problem.depth, blocks), problem.depth_multiple);

  int64_t size = problem.wide ? 8 : 4;
  int64_t block_rows = plan.blocking.block_rows;
  int64_t fitting = kPackedBytes / (problem.depth * size);
  plan.pack_rows = std::clamp(
      fitting / block_rows * block_rows, 2 * block_rows, 8 * block_rows);
  plan.pack_rows = std::min(plan.pack_rows, round_up(problem.rows, tile_rows));

  // A strip of B of 16 panels fits half of L2. Tasks get smaller until
  // there are enough of them for each thread to have several, rows last:
  // each block of rows packs its strip of B again.
  plan.task_rows = plan.pack_rows;
  plan.task_cols = std::min(16 * tile_cols, round_up(problem.cols, tile_cols));
  auto tasks = [&] {
    return ceil_div(problem.cols, plan.task_cols) *
           ceil_div(plan.pack_rows, plan.task_rows);
  };
  auto flops = [&] {
    return 2 * plan.task_rows * plan.task_cols * problem.depth;
  };
  int64_t wanted = 4 * threads;
  while (threads > 1 && tasks() < wanted && flops() > 2 * kTaskFlops) {
    if (plan.task_rows > 2 * block_rows || plan.task_cols == tile_cols) {
      int64_t half = round_up(ceil_div(plan.task_rows, 2), tile_rows);
      if (half == plan.task_rows) {
        break;
      }
      plan.task_rows = half;
    } else {
      plan.task_cols = round_up(plan.task_cols / 2, tile_cols);
    }
  }
  return plan;
}

void finish_empty_gemm(const GemmProblem& problem) {
  // One empty block per row band: sums of nothing are zero.
  gemm_block(
      {.a = nullptr,
       .b = nullptr,
       .rows = problem.rows,
       .cols = problem.cols,
       .depth = 0,
       .sums = nullptr,
       .sums_stride = 0,
       .first = true,
       .epilogue = &problem.result,
       .first_row = 0,
       .first_col = 0},
      problem.wide);
}

namespace detail {

bool sums_are_results(const GemmProblem& problem) {
  auto type = problem.result.type;
  bool narrow = type == Dtype::Val::float16 || type == Dtype::Val::bfloat16;
  return !narrow && problem.result.alpha == 1 && problem.result.beta == 0;
}

}  // namespace detail

namespace {

/// Bytes of a skinny product's weights per task.
constexpr int64_t kSkinnyTaskBytes = 128 << 10;
constexpr int64_t kSkinnyTaskLines = 504;
/// Largest product that is worth no packing, in multiplications and depth.
constexpr int64_t kSmallProduct = 64 * 64 * 64;
constexpr int64_t kSmallDepth = 256;

GemmProblem as_problem(const GemmArgs& args) {
  int64_t parts = args.type == Dtype::Val::complex64 ? 2 : 1;
  return {
      .rows = args.rows,
      .cols = args.cols * parts,
      .depth = args.depth * parts,
      .wide = args.type == Dtype::Val::float64,
      .result = {
          .type = args.type,
          .out = args.out,
          .out_stride = args.cols * parts,
          .alpha = args.alpha,
          .beta = args.beta,
          .c = args.c.data,
          .c_row_stride = args.c.row_stride,
          .c_col_stride = args.c.col_stride}};
}

GemmSource rows_of(const GemmOperand& x, Dtype type) {
  return {x.data, x.row_stride, x.col_stride, type};
}
GemmSource cols_of(const GemmOperand& x, Dtype type) {
  return {x.data, x.col_stride, x.row_stride, type};
}

void gemm_packed(const GemmArgs& args) {
  GemmSource a = rows_of(args.a, args.type);
  GemmSource b = cols_of(args.b, args.type);
  auto packer = [](const GemmSource& source, GemmSide side) {
    return [&source, side](
               int64_t line,
               int64_t lines,
               int64_t start,
               int64_t depth,
               void* to) {
      gemm_pack(source, side, line, lines, start, depth, to);
    };
  };
  run_gemm(as_problem(args), packer(a, GemmSide::a), packer(b, GemmSide::b));
}

/// Lines of w per task. Side by side they should be long runs of memory, so as
/// many as the threads leave; otherwise a task's weights fit L2, as five to
/// eight rows read them twice.
int64_t skinny_step(int64_t line_bytes, int64_t lines, const GemmSource& w) {
  if (w.depth_stride == 1) {
    return std::clamp(
        kSkinnyTaskBytes / line_bytes / 12 * 12, int64_t(12), kSkinnyTaskLines);
  }
  int64_t share = ceil_div(lines, 2 * num_threads());
  return std::clamp(round_up(share, 64), int64_t(128), int64_t(4096));
}

/// x holds the few lines, w the many; `across` when w is B, so that its lines
/// are columns of the result.
void gemm_skinny(
    const GemmProblem& problem,
    const GemmSource& x,
    int64_t rows,
    const GemmSource& w,
    int64_t lines,
    bool across) {
  int64_t size = problem.wide ? sizeof(double) : sizeof(float);
  void* few =
      scratch(ScratchUse::shared_panels, size_t(rows * problem.depth * size));
  gemv_rows(x, rows, problem.depth, few);
  GemmEpilogue result = problem.result;
  if (!across && rows == 1) {  // a column is finished as a row
    result.c_col_stride = result.c_row_stride;
    across = true;
  }
  int64_t step = skinny_step(problem.depth * x.type.size(), lines, w);
  parallel_for(size_t(ceil_div(lines, step)), 1, [&](size_t begin, size_t end) {
    void* sums = scratch(ScratchUse::sums, size_t(step * rows * size));
    for (int64_t i = int64_t(begin) * step;
         i < std::min(int64_t(end) * step, lines);
         i += step) {
      int64_t count = std::min(step, lines - i);
      int64_t row_stride = across ? step : 1;
      int64_t line_stride = across ? 1 : rows;
      gemv_lines(
          w, few, rows, i, count, problem.depth, sums, row_stride, line_stride);
      if (across) {
        gemm_finish(sums, step, rows, count, result, 0, i);
      } else {
        gemm_finish(sums, rows, count, rows, result, i, 0);
      }
    }
  });
}

void run_small(const GemmArgs& args) {
  GemmProblem problem = as_problem(args);
  bool direct = detail::sums_are_results(problem);
  void* panel = scratch(
      ScratchUse::panels,
      size_t(args.depth * gemm_blocking(problem.wide).cols) * args.type.size());
  gemm_small(
      {.a = args.a.data,
       .b = nullptr,
       .rows = args.rows,
       .cols = args.cols,
       .depth = args.depth,
       .sums = direct ? args.out : nullptr,
       .sums_stride = args.cols,
       .first = true,
       .epilogue = direct ? nullptr : &problem.result,
       .first_row = 0,
       .first_col = 0},
      args.a.row_stride,
      args.a.col_stride,
      cols_of(args.b, args.type),
      panel);
}

bool is_skinny(int64_t few, const GemmOperand& many) {
  return few <= kGemvRows && (many.row_stride == 1 || many.col_stride == 1);
}

/// One product; batch axes of args are not looked at.
void gemm_one(const GemmArgs& args) {
  bool complex = args.type == Dtype::Val::complex64;
  bool real32 = args.type == Dtype::Val::float32;
  if (args.depth == 0) {
    finish_empty_gemm(as_problem(args));
  } else if (
      !complex && args.rows <= args.cols && is_skinny(args.rows, args.b)) {
    gemm_skinny(
        as_problem(args),
        rows_of(args.a, args.type),
        args.rows,
        cols_of(args.b, args.type),
        args.cols,
        true);
  } else if (
      !complex && args.cols < args.rows && is_skinny(args.cols, args.a)) {
    gemm_skinny(
        as_problem(args),
        cols_of(args.b, args.type),
        args.cols,
        rows_of(args.a, args.type),
        args.rows,
        false);
  } else if (
      (real32 || args.type == Dtype::Val::float64) &&
      args.depth <= kSmallDepth &&
      args.rows * args.cols * args.depth <= kSmallProduct) {
    run_small(args);
  } else {
    gemm_packed(args);
  }
}

int64_t stride_of(const GemmOperand& x, size_t axis) {
  return x.batch_strides.empty() ? 0 : x.batch_strides[axis];
}

/// Moves the last batch axis into the rows while all rows lie evenly and share
/// one B: a batch of row blocks is one tall matrix.
void merge_batch(GemmArgs& args) {
  while (!args.batch_shape.empty()) {
    size_t last = args.batch_shape.size() - 1;
    auto even = [&](const GemmOperand& x) {
      return stride_of(x, last) == args.rows * x.row_stride;
    };
    bool one = args.batch_shape[last] == 1;
    bool joins = stride_of(args.b, last) == 0 && even(args.a) &&
                 (args.beta == 0 || even(args.c));
    if (!one && !joins) {
      return;
    }
    args.rows *= args.batch_shape[last];
    args.batch_shape = args.batch_shape.first(last);
  }
}

/// The operand moved to the matrix of a batch index (row-major over the shape).
GemmOperand at_batch(
    const GemmOperand& x,
    std::span<const int64_t> shape,
    int64_t index,
    int64_t item_size) {
  int64_t offset = 0;
  for (size_t axis = shape.size(); axis-- > 0;) {
    offset += index % shape[axis] * stride_of(x, axis);
    index /= shape[axis];
  }
  GemmOperand moved = x;
  moved.data = static_cast<const char*>(x.data) + offset * item_size;
  return moved;
}

}  // namespace

void gemm(const GemmArgs& batched) {
  GemmArgs args = batched;
  merge_batch(args);
  int64_t count = 1;
  for (int64_t n : args.batch_shape) {
    count *= n;
  }
  if (count == 0 || args.rows == 0 || args.cols == 0) {
    return;
  }
  if (count == 1) {
    gemm_one(args);
    return;
  }
  int64_t size = args.type.size();
  auto run = [&](size_t begin, size_t end) {
    for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
      GemmArgs one = args;
      one.a = at_batch(args.a, args.batch_shape, i, size);
      one.b = at_batch(args.b, args.batch_shape, i, size);
      if (args.beta != 0) {
        one.c = at_batch(args.c, args.batch_shape, i, size);
      }
      one.out = static_cast<char*>(args.out) + i * args.rows * args.cols * size;
      gemm_one(one);
    }
  };
  // Whole products are the tasks where there are enough of them.
  if (count >= 2 * num_threads()) {
    int64_t flops =
        2 * args.rows * args.cols * std::max<int64_t>(1, args.depth);
    parallel_for(
        size_t(count), size_t(std::max<int64_t>(1, kTaskFlops / flops)), run);
  } else {
    run(0, size_t(count));
  }
}

}  // namespace mlx::core::cpu
