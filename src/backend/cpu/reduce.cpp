// Reductions: fixed blocks of the input are combined in parallel, then the
// blocks' results by the same code. So a result does not depend on the number
// of threads, and a float32 sum passes through few additions one after the
// other. Reads each element once: the limit is read bandwidth.
#include "backend/cpu/reduce.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "backend/common/reduce_plan.h"
#include "backend/cpu/copy.h"
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

// Columns handled together: their float32 results fill half of the L1 cache.
constexpr int64_t kPanel = 4096;
// Rows combined one after the other within a column.
constexpr int64_t kRowBlock = 256;
// Elements that a thread takes at least.
constexpr int64_t kGrain = 4 * kReducedBlock;

ReduceLoops loops_of(ReduceType type, Dtype dtype) {
  switch (type) {
    case ReduceType::sum:
      return reduce_sum_loops(dtype);
    case ReduceType::prod:
      return reduce_prod_loops(dtype);
    case ReduceType::max:
      return reduce_max_loops(dtype);
    case ReduceType::min:
      return reduce_min_loops(dtype);
    default:
      return reduce_logic_loops(type == ReduceType::any, dtype);
  }
}

int64_t blocks(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

// Input of one round: elements of `dtype` at `data`.
struct Source {
  const char* data;
  Dtype dtype;
  ReduceLoops loops;

  const char* at(int64_t offset) const { return data + offset * dtype.size(); }
};

class Reducer {
 public:
  explicit Reducer(ReduceType type, Dtype dtype)
      : type_(type), result_(reduce_accumulator(type, dtype)) {}

  Source source(const void* data, Dtype dtype) const {
    return {static_cast<const char*>(data), dtype, loops_of(type_, dtype)};
  }

  // Results in the order of the kept axes.
  void rows(const Source& x, const ReducePlan& plan, char* out) {
    PlanAxis inner = plan.reduced.back();
    std::vector<PlanAxis> outer = plan.kept;
    outer.insert(outer.end(), plan.reduced.begin(), plan.reduced.end() - 1);
    int64_t results = count(plan.kept);
    int64_t parts = count(outer) / results * blocks(inner.size, kReducedBlock);
    std::unique_ptr<char[]> memory;
    char* to = out;
    if (parts > 1) {
      memory = allocate(results * parts);
      to = memory.get();
    }
    if (inner.size <= kReducedBlock) {
      short_rows(x, outer, inner.size, to);
    } else {
      long_rows(x, outer, inner, to);
    }
    if (parts > 1) {
      ReducePlan rest{
          ReducePlan::rows, {{results, parts}}, {{parts, 1}}, Strides{}};
      rows(source(to, result_), rest, out);
    }
  }

  void columns(const Source& x, const ReducePlan& plan, char* out) {
    std::vector<PlanAxis> outer(plan.kept.begin(), plan.kept.end() - 1);
    // The longest of the combined axes is walked inside the loops.
    std::vector<PlanAxis> others = plan.reduced;
    auto longest = std::max_element(
        others.begin(), others.end(), [](PlanAxis a, PlanAxis b) {
          return a.size < b.size;
        });
    PlanAxis row = *longest;
    others.erase(longest);
    int64_t cols = plan.kept.back().size;
    int64_t row_block = std::max(kRowBlock, kGrain / cols);
    int64_t parts = count(others) * blocks(row.size, row_block);
    int64_t results = count(outer);
    std::unique_ptr<char[]> memory;
    char* to = out;
    if (parts > 1) {
      memory = allocate(results * parts * cols);
      to = memory.get();
    }
    outer.insert(outer.end(), others.begin(), others.end());
    column_parts(x, outer, row, row_block, cols, to);
    if (parts > 1) {
      ReducePlan rest{
          ReducePlan::columns,
          {{results, parts * cols}, {cols, 1}},
          {{parts, cols}},
          Strides{}};
      columns(source(to, result_), rest, out);
    }
  }

  size_t result_size() const { return result_.size(); }

 private:
  std::unique_ptr<char[]> allocate(int64_t n) const {
    return std::make_unique_for_overwrite<char[]>(n * result_.size());
  }

  // One result a row; the last outer axis is walked inside the loops.
  void short_rows(
      const Source& x, std::vector<PlanAxis> outer, int64_t n, char* to) {
    PlanAxis row = outer.back();
    outer.pop_back();
    int64_t chunk = std::clamp<int64_t>(kGrain / n, 1, row.size);
    int64_t chunks = blocks(row.size, chunk);
    size_t grain = std::max<int64_t>(1, kGrain / (chunk * n));
    parallel_for(count(outer) * chunks, grain, [&](size_t begin, size_t end) {
      for (int64_t i = begin; i < static_cast<int64_t>(end); ++i) {
        int64_t position = i / chunks;
        int64_t first = i % chunks * chunk;
        x.loops.rows(
            x.at(offset_of(outer, position) + first * row.stride),
            row.stride,
            std::min(chunk, row.size - first),
            n,
            to + (position * row.size + first) * result_.size());
      }
    });
  }

  // One result a block of a row.
  void long_rows(
      const Source& x,
      const std::vector<PlanAxis>& outer,
      PlanAxis inner,
      char* to) {
    int64_t in_row = blocks(inner.size, kReducedBlock);
    parallel_for(
        count(outer) * in_row,
        kGrain / kReducedBlock,
        [&](size_t begin, size_t end) {
          for (int64_t i = begin; i < static_cast<int64_t>(end); ++i) {
            int64_t first = i % in_row * kReducedBlock;
            x.loops.rows(
                x.at(offset_of(outer, i / in_row) + first * inner.stride),
                0,
                1,
                std::min(kReducedBlock, inner.size - first),
                to + i * result_.size());
          }
        });
  }

  // `cols` results a block of rows.
  void column_parts(
      const Source& x,
      const std::vector<PlanAxis>& outer,
      PlanAxis row,
      int64_t row_block,
      int64_t cols,
      char* to) {
    int64_t row_blocks = blocks(row.size, row_block);
    int64_t panels = blocks(cols, kPanel);
    int64_t work = std::min(row.size, row_block) * std::min(cols, kPanel);
    parallel_for(
        count(outer) * row_blocks * panels,
        std::max<int64_t>(1, kGrain / work),
        [&](size_t begin, size_t end) {
          for (int64_t i = begin; i < static_cast<int64_t>(end); ++i) {
            int64_t col = i % panels * kPanel;
            int64_t part = i / panels;
            int64_t first = part % row_blocks * row_block;
            x.loops.columns(
                x.at(
                    offset_of(outer, part / row_blocks) + first * row.stride +
                    col),
                row.stride,
                std::min(row_block, row.size - first),
                std::min(kPanel, cols - col),
                to + (part * cols + col) * result_.size());
          }
        });
  }

  ReduceType type_;
  Dtype result_;
};

// The loops want neighbours in memory. Inputs without are copied first, but for
// a single value repeated everywhere.
bool needs_copy(const ReducePlan& plan) {
  const PlanAxis& inner = plan.inner();
  return inner.size > 1 && inner.stride != 1 && inner.stride != 0;
}

void set_layout(array& out, const Strides& strides) {
  auto [reached, is_row, is_column] = check_contiguity(out.shape(), strides);
  out.set_data(
      allocator::malloc(out.nbytes()),
      out.size(),
      strides,
      {true, is_row, is_column});
}

// Every element is the same one: a block full of it serves all blocks of one
// result, which then is repeated.
void reduce_repeated(
    Reducer& reducer, const array& x, ReducePlan plan, char* to, size_t n) {
  size_t block = std::min(count(plan.reduced), kReducedBlock);
  auto memory = std::make_unique_for_overwrite<char[]>(block * x.itemsize());
  gather_block(x.data<char>(), 0, memory.get(), block, x.itemsize());
  plan.kept = {{1, 0}};
  reducer.rows(reducer.source(memory.get(), x.dtype()), plan, to);
  alignas(8) char result[8];
  std::memcpy(result, to, reducer.result_size());
  gather_block(result, 0, to, n, reducer.result_size());
}

void reduce_into(
    Reducer& reducer,
    const array& x,
    const ReducePlan& plan,
    array& out,
    char* to) {
  Source source = reducer.source(x.data<char>(), x.dtype());
  if (x.size() == 0) {
    // The neutral elements.
    source.loops.rows(nullptr, 0, out.size(), 0, to);
  } else if (plan.inner().stride == 0 && plan.inner().size > 1) {
    reduce_repeated(reducer, x, plan, to, out.size());
  } else if (plan.kind == ReducePlan::rows) {
    reducer.rows(source, plan, to);
  } else {
    reducer.columns(source, plan, to);
  }
}

}  // namespace

void reduce(const Reduce& op, const array& x, array& out) {
  ReduceType type = op.params().type;
  Dtype result = reduce_accumulator(type, x.dtype());
  Reducer reducer(type, x.dtype());
  Strides strides = out.strides();
  array in = x;
  ReducePlan plan;
  if (x.size() > 0) {
    plan = reduce_plan(in, op.params().axes);
    if (needs_copy(plan)) {
      in = row_contiguous(in);
      plan = reduce_plan(in, op.params().axes);
    }
    strides = plan.out_strides;
  }
  set_layout(out, strides);
  if (out.size() == 0) {
    return;
  }
  // Results of another type are made beside the output.
  bool direct = result == out.dtype();
  std::unique_ptr<char[]> memory;
  char* to = out.data<char>();
  if (!direct) {
    memory = std::make_unique_for_overwrite<char[]>(out.size() * result.size());
    to = memory.get();
  }
  reduce_into(reducer, in, plan, out, to);
  if (!direct) {
    const void* from[] = {to};
    convert_block(result, out.dtype())(from, out.data<char>(), out.size());
  }
}

namespace {

// The axis is not the last: neighbours in memory belong to different results.
void arg_reduce_columns(
    const ArgReduceLoops& loops, int axis, const array& x, uint32_t* to) {
  int64_t n = x.shape(axis);
  int64_t cols = 1;
  for (int i = axis + 1; i < static_cast<int>(x.ndim()); ++i) {
    cols *= x.shape(i);
  }
  int64_t panel = std::min<int64_t>(cols, 1024);
  int64_t panels = blocks(cols, panel);
  int64_t outer = static_cast<int64_t>(x.size()) / (n * cols);
  parallel_for(
      outer * panels,
      std::max<int64_t>(1, kGrain / (n * panel)),
      [&](size_t begin, size_t end) {
        for (int64_t i = begin; i < static_cast<int64_t>(end); ++i) {
          int64_t first = i % panels * panel;
          int64_t row = i / panels;
          loops.columns(
              x.data<char>() + (row * n * cols + first) * x.itemsize(),
              cols,
              n,
              std::min(panel, cols - first),
              to + row * cols + first);
        }
      });
}

}  // namespace

void arg_reduce(const ArgReduce& op, const array& x, array& out) {
  uint32_t* to = allocate_output<uint32_t>(out);
  if (out.size() == 0) {
    return;
  }
  ArgReduceLoops loops = arg_reduce_loops(op.params().largest, x.dtype());
  if (x.flags().row_contiguous && op.params().axis + 1 < int(x.ndim())) {
    arg_reduce_columns(loops, op.params().axis, x, to);
    return;
  }
  // Rows along the axis, one after the other in memory.
  int axis = op.params().axis;
  Shape shape = x.shape();
  Strides strides = x.strides();
  int64_t n = shape[axis];
  std::vector<PlanAxis> outer;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<int>(i) != axis) {
      outer.push_back({shape[i], strides[i]});
    }
  }
  const char* data = x.data<char>();
  std::unique_ptr<char[]> memory;
  if (strides[axis] != 1 && n > 1) {
    memory = std::make_unique_for_overwrite<char[]>(x.nbytes());
    shape.erase(shape.begin() + axis);
    strides.erase(strides.begin() + axis);
    shape.push_back(n);
    strides.push_back(x.strides()[axis]);
    copy_strided(
        data,
        strides,
        memory.get(),
        make_contiguous_strides(shape),
        shape,
        x.itemsize());
    data = memory.get();
    outer = {{static_cast<int64_t>(out.size()), n}};
  }
  parallel_for(
      out.size(),
      std::max<int64_t>(1, kGrain / n),
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          to[i] = loops.row(
              data + offset_of(outer, static_cast<int64_t>(i)) * x.itemsize(),
              n);
        }
      });
}

}  // namespace mlx::core::cpu
