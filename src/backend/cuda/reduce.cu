// Reductions: how the work of a pass is laid over blocks and threads. Fixed
// parts are combined in a fixed order, so that a result is the same every
// time.
#include <algorithm>

#include "backend/common/reduce_plan.h"
#include "backend/cuda/copy.h"
#include "backend/cuda/reduce.h"
#include "backend/cuda/reduce_pass.h"
#include "backend/cuda/work_split.h"
#include "mlx/backend/common/utils.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

/// Whether packs of `n` elements begin at multiples of 16 bytes: `axes` are
/// those that do not walk along packs.
bool keeps_alignment(const std::vector<PlanAxis>& axes, int64_t n) {
  return std::all_of(axes.begin(), axes.end(), [n](const PlanAxis& axis) {
    return axis.size == 1 || axis.stride % n == 0;
  });
}

std::vector<PlanAxis> without_last(const std::vector<PlanAxis>& axes) {
  return {axes.begin(), axes.end() - 1};
}

// Of 16 bytes a step and many rows, a thread takes about four steps; of few
// rows each gets more threads, then several blocks.
ReducePass rows_pass(const ReducePlan& plan, const void* x, size_t itemsize) {
  ReducePass pass{};
  ReduceArgs& a = pass.args;
  pass.is_rows = true;
  int64_t n = 16 / static_cast<int64_t>(itemsize);
  std::vector<PlanAxis> reduced = plan.reduced;
  PlanAxis& inner = reduced.back();
  bool is_single = reduced.size() == 1;
  a.packed = inner.stride == 1 && inner.size >= n &&
             (is_single || inner.size % n == 0) &&
             reinterpret_cast<uintptr_t>(x) % 16 == 0 &&
             keeps_alignment(plan.kept, n) &&
             keeps_alignment(without_last(reduced), n);
  if (a.packed) {
    a.tail = static_cast<int>(inner.size % n);
    inner = {inner.size / n, n};
  }
  a.x = x;
  a.kept = walk_axes(plan.kept);
  a.reduced = walk_axes(reduced);
  a.results = count(plan.kept);
  a.steps = count(reduced);

  int64_t width =
      a.steps <= 512 ? std::min<int64_t>(32, power_of_two(ceil_div(a.steps, 4)))
                     : 128;
  while (width < kReduceThreads && a.results * width < device_threads() &&
         a.steps > 4 * width) {
    width *= 2;
  }
  int64_t parts = 1;
  if (a.results * width < device_threads()) {
    int64_t most = std::max<int64_t>(1, 8192 / a.results);
    parts = std::min(most, ceil_div(a.steps, 32 * width));
  }
  a.steps_of_part = ceil_div(a.steps, std::max<int64_t>(1, parts));
  int64_t rows = width > 32 ? 1 : 256 / width;
  pass.block = dim3(static_cast<unsigned>(width), static_cast<unsigned>(rows));
  pass.grid = dim3(
      static_cast<unsigned>(ceil_div(a.results, rows)),
      static_cast<unsigned>(std::max<int64_t>(1, parts)));
  return pass;
}

// Up to 32 packs of columns side by side are 512 bytes of a row; the other
// threads of a block take other rows, about eight each at least.
ReducePass columns_pass(
    const ReducePlan& plan, const void* x, size_t itemsize) {
  ReducePass pass{};
  ReduceArgs& a = pass.args;
  pass.is_rows = false;
  int64_t n = 16 / static_cast<int64_t>(itemsize);
  std::vector<PlanAxis> kept = without_last(plan.kept);
  PlanAxis inner = plan.kept.back();
  a.packed = inner.stride == 1 && inner.size % n == 0 &&
             reinterpret_cast<uintptr_t>(x) % 16 == 0 &&
             keeps_alignment(kept, n) && keeps_alignment(plan.reduced, n);
  a.columns = inner.size;
  a.column_units = a.packed ? inner.size / n : inner.size;
  a.column_stride = a.packed ? n : inner.stride;
  a.x = x;
  if (kept.empty()) {
    kept.push_back({1, 0});
  }
  a.kept = walk_axes(kept);
  a.reduced = walk_axes(plan.reduced);
  a.results = count(kept);
  a.steps = count(plan.reduced);

  int64_t most_x = power_of_two(a.column_units);
  int64_t lanes = std::min(
      kColumnThreads / std::min<int64_t>(32, most_x),
      power_of_two(ceil_div(a.steps, 8)));
  int64_t width = std::min(most_x, kColumnThreads / lanes);
  int64_t of_block = kColumnThreads / (width * lanes);
  a.x_bits = log2_of(width);
  a.y_bits = log2_of(lanes);
  a.column_blocks = ceil_div(a.column_units, width);
  int64_t grid = ceil_div(a.results, of_block) * a.column_blocks;
  int64_t wanted = int64_t(16) * device_facts().multiprocessors;
  int64_t parts = std::min(
      std::max<int64_t>(1, wanted / grid), ceil_div(a.steps, 16 * lanes));
  a.steps_of_part = ceil_div(a.steps, parts);
  pass.block = dim3(kColumnThreads);
  pass.grid = dim3(static_cast<unsigned>(grid), static_cast<unsigned>(parts));
  return pass;
}

void launch_pass(
    ReduceType type, const ReducePass& pass, Dtype dtype, Encoder& e) {
  switch (type) {
    case ReduceType::sum:
      return sum_pass(pass, dtype, e);
    case ReduceType::prod:
      return prod_pass(pass, dtype, e);
    case ReduceType::max:
      return max_pass(pass, dtype, e);
    case ReduceType::min:
      return min_pass(pass, dtype, e);
    default:
      return logic_pass(pass, dtype, e);
  }
}

/// The parts of a pass as the input of the next.
ReducePlan rest_of(const ReducePass& pass) {
  ReducePlan rest;
  auto parts = static_cast<int64_t>(pass.grid.y);
  int64_t results = pass.args.results;
  if (pass.is_rows) {
    rest.kind = ReducePlan::rows;
    rest.kept = {{results, parts}};
    rest.reduced = {{parts, 1}};
  } else {
    int64_t columns = pass.args.columns;
    rest.kind = ReducePlan::columns;
    rest.kept = {{results, parts * columns}, {columns, 1}};
    rest.reduced = {{parts, columns}};
  }
  return rest;
}

void reduce_into(
    ReduceType type,
    const ReducePlan& plan,
    const void* x,
    Dtype dtype,
    void* out,
    Dtype out_dtype,
    Encoder& e) {
  ReducePass pass = plan.kind == ReducePlan::rows
                        ? rows_pass(plan, x, dtype.size())
                        : columns_pass(plan, x, dtype.size());
  pass.args.is_all = type == ReduceType::all;
  pass.args.out_type =
      out_dtype.val() == Dtype::Val::float16    ? ReduceArgs::float16
      : out_dtype.val() == Dtype::Val::bfloat16 ? ReduceArgs::bfloat16
                                                : ReduceArgs::accumulated;
  if (pass.grid.y == 1) {
    pass.args.out = out;
    launch_pass(type, pass, dtype, e);
    return;
  }
  Dtype wide = reduce_accumulator(type, dtype);
  int64_t results =
      pass.is_rows ? pass.args.results : pass.args.results * pass.args.columns;
  Scratch parts = e.scratch(results * pass.grid.y * wide.size());
  pass.args.out = parts.get();
  pass.args.out_type = ReduceArgs::accumulated;
  launch_pass(type, pass, dtype, e);
  reduce_into(type, rest_of(pass), parts.get(), wide, out, out_dtype, e);
}

void set_layout(array& out, const Strides& strides, Encoder& e) {
  auto [reached, is_row, is_column] = check_contiguity(out.shape(), strides);
  out.set_data(
      memory().buffer(out.nbytes(), e.lane()),
      out.size(),
      strides,
      {true, is_row, is_column});
}

bool has_too_many_axes(const ReducePlan& plan) {
  return plan.kept.size() > WalkAxes::most ||
         plan.reduced.size() > WalkAxes::most;
}

}  // namespace

void reduce(const Reduce& op, const array& x, array& out, Encoder& e) {
  ReduceType type = op.params().type;
  if (x.size() == 0) {
    // The neutral elements.
    e.allocate(out);
    if (out.size() > 0) {
      auto results = static_cast<int64_t>(out.size());
      ReducePlan none{ReducePlan::rows, {{results, 0}}, {{0, 1}}, Strides{}};
      void* to = e.out(out);
      reduce_into(type, none, to, x.dtype(), to, out.dtype(), e);
    }
    return;
  }
  array in = x;
  ReducePlan plan = reduce_plan(in, op.params().axes);
  if (has_too_many_axes(plan)) {
    in = row_contiguous(in, e);
    plan = reduce_plan(in, op.params().axes);
    if (has_too_many_axes(plan)) {
      invalid(
          "reduce",
          "too many axes that are combined and kept in turn: ",
          x.ndim(),
          ". The gpu takes up to ",
          WalkAxes::most,
          " of each.");
    }
  }
  set_layout(out, plan.out_strides, e);
  reduce_into(type, plan, e.in(in), x.dtype(), e.out(out), out.dtype(), e);
}

}  // namespace mlx::core::cuda
