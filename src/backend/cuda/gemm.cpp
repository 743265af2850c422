// Plans matrix products: merges batch axes into rows, sends vectors to kernels
// of their own, and shows the rest to cuBLASLt, which counts by columns: the
// row-major product out = a b is to it out' = b' a'. Operands are copied only
// when neither their rows nor their columns are contiguous.
#include "backend/cuda/gemm.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "backend/cuda/blas.h"
#include "backend/cuda/copy.h"
#include "backend/cuda/gemv.h"

namespace mlx::core::cuda {

namespace {

/// Batches that are not evenly spaced cost a call for each run of even ones,
/// up to here; then they are copied.
constexpr int64_t kMostCalls = 16;
/// Matrices in one call.
constexpr int64_t kMostBatch = 65535;

int64_t size_of(const Shape& shape) {
  int64_t size = 1;
  for (ShapeElem n : shape) {
    size *= n;
  }
  return size;
}

const void* advance(const void* at, int64_t elements, Dtype type) {
  return static_cast<const char*>(at) + elements * int64_t(type.size());
}

/// Moves the last batch axis into the rows while all rows lie evenly and share
/// one b: a batch of row blocks is one tall matrix.
void merge_batch(GemmArgs& args) {
  while (!args.batch_shape.empty()) {
    size_t last = args.batch_shape.size() - 1;
    auto even = [&](const GemmOperand& x) {
      return args.rows == 1 ||
             x.batch_strides[last] == args.rows * x.row_stride;
    };
    bool one = args.batch_shape[last] == 1;
    bool joins = args.b.batch_strides[last] == 0 && even(args.a) &&
                 (args.beta == 0 || even(args.c));
    if (!one && !joins) {
      return;
    }
    if (args.rows == 1 && !one) {
      args.a.row_stride = args.a.batch_strides[last];
      args.c.row_stride = args.beta == 0 ? 0 : args.c.batch_strides[last];
    }
    args.rows *= args.batch_shape[last];
    args.batch_shape.pop_back();
    args.a.batch_strides.pop_back();
    args.b.batch_strides.pop_back();
    if (args.beta != 0) {
      args.c.batch_strides.pop_back();
    }
  }
}

/// Sums of nothing are zero.
void empty_product(const GemmArgs& args, Encoder& e) {
  int64_t size = size_of(args.batch_shape) * args.rows * args.cols;
  if (args.beta == 0) {
    e.fill_bytes(args.out, 0, static_cast<size_t>(size) * args.type.size());
    return;
  }
  Shape shape = args.batch_shape;
  Strides strides = args.c.batch_strides;
  shape.push_back(static_cast<ShapeElem>(args.rows));
  shape.push_back(static_cast<ShapeElem>(args.cols));
  strides.push_back(args.c.row_stride);
  strides.push_back(args.c.col_stride);
  scaled_copy(args.type, args.c.data, shape, strides, args.beta, args.out, e);
}

/// The product of a matrix and a vector, where one of them is a vector and the
/// matrix has an axis of contiguous elements.
std::optional<GemvArgs> as_gemv(const GemmArgs& args) {
  bool across = args.rows == 1;  // the result is a row
  if (!across && args.cols != 1) {
    return std::nullopt;
  }
  if (args.type == Dtype::Val::float64 || args.type == Dtype::Val::complex64) {
    return std::nullopt;
  }
  const GemmOperand& w = across ? args.b : args.a;
  const GemmOperand& x = across ? args.a : args.b;
  int64_t lines = across ? args.cols : args.rows;
  int64_t depth_stride = across ? w.row_stride : w.col_stride;
  int64_t line_stride = across ? w.col_stride : w.row_stride;
  bool depth_is_inner = depth_stride == 1 || args.depth == 1;
  if (!depth_is_inner && line_stride != 1 && lines != 1) {
    return std::nullopt;
  }
  GemvArgs vector{
      .type = args.type,
      .lines = lines,
      .depth = args.depth,
      .w = w.data,
      .pitch = depth_is_inner ? line_stride : depth_stride,
      .depth_is_inner = depth_is_inner,
      .x = x.data,
      .x_stride = across ? x.col_stride : x.row_stride,
      .out = args.out,
      .alpha = static_cast<float>(args.alpha),
      .beta = static_cast<float>(args.beta),
      .c = args.c.data,
      .c_stride = across ? args.c.col_stride : args.c.row_stride,
      .batch_shape = args.batch_shape,
      .w_batch = w.batch_strides,
      .x_batch = x.batch_strides,
      .c_batch = args.c.batch_strides};
  if (args.beta == 0) {
    vector.c_batch = Strides(args.batch_shape.size(), 0);
  }
  return vector;
}

/// A row-major matrix as a column-major one; nothing when its elements do not
/// lie as cuBLASLt wants.
std::optional<BlasMatrix> as_blas(
    const GemmOperand& x, int64_t rows, int64_t cols) {
  if ((x.col_stride == 1 || cols == 1) && (x.row_stride >= cols || rows == 1)) {
    return BlasMatrix{
        .data = x.data,
        .transposed = false,
        .leading = rows == 1 ? cols : x.row_stride};
  }
  if ((x.row_stride == 1 || rows == 1) && (x.col_stride >= rows || cols == 1)) {
    return BlasMatrix{
        .data = x.data,
        .transposed = true,
        .leading = cols == 1 ? rows : x.col_stride};
  }
  return std::nullopt;
}

/// Row-major copies of a batch of matrices; those that stand for many (stride
/// 0) are copied once, or as often as they are wanted with `all`.
Scratch copy_matrices(
    GemmOperand& x,
    int64_t rows,
    int64_t cols,
    bool all,
    const GemmArgs& args,
    Encoder& e) {
  Shape shape;
  Strides from;
  Strides to;
  size_t axes = args.batch_shape.size();
  for (size_t i = 0; i < axes; ++i) {
    bool once = x.batch_strides[i] == 0 && !all;
    shape.push_back(once ? 1 : args.batch_shape[i]);
    from.push_back(x.batch_strides[i]);
  }
  shape.push_back(static_cast<ShapeElem>(rows));
  shape.push_back(static_cast<ShapeElem>(cols));
  from.push_back(x.row_stride);
  from.push_back(x.col_stride);
  to = Strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i > 0; --i) {
    to[i - 1] = to[i] * shape[i];
  }
  Scratch copy =
      e.scratch(static_cast<size_t>(size_of(shape)) * args.type.size());
  copy_strided(x.data, from, copy.get(), to, shape, args.type.size(), e);
  x.data = copy.get();
  x.row_stride = cols;
  x.col_stride = 1;
  for (size_t i = 0; i < axes; ++i) {
    x.batch_strides[i] = shape[i] == 1 ? 0 : to[i];
  }
  return copy;
}

/// The batch as one evenly spaced axis, and axes around it.
struct BatchPlan {
  size_t even_axis = 0;
  int64_t count = 1;
  int64_t calls = 1;
};

BatchPlan plan_batch(const Shape& shape) {
  BatchPlan plan;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > shape[plan.even_axis]) {
      plan.even_axis = i;
    }
  }
  if (!shape.empty()) {
    plan.count = shape[plan.even_axis];
    plan.calls = plan.count == 0 ? 0 : size_of(shape) / plan.count;
  }
  return plan;
}

/// Makes one axis of the batch by copying operands that do not lie evenly.
void flatten_batch(GemmArgs& args, std::vector<Scratch>& kept, Encoder& e) {
  auto flatten = [&](GemmOperand& x, int64_t rows, int64_t cols) {
    const Shape& shape = args.batch_shape;
    size_t last = shape.size() - 1;
    bool even = true;
    for (size_t i = 0; i < last; ++i) {
      even =
          even && x.batch_strides[i] == x.batch_strides[i + 1] * shape[i + 1];
    }
    if (!even) {
      kept.push_back(copy_matrices(x, rows, cols, true, args, e));
    }
    // Copies made above have stride 0 where an axis is one long.
    int64_t stride = even ? x.batch_strides[last] : rows * cols;
    x.batch_strides = Strides{stride};
  };
  flatten(args.a, args.rows, args.depth);
  flatten(args.b, args.depth, args.cols);
  if (args.beta != 0) {
    flatten(args.c, args.rows, args.cols);
  }
  args.batch_shape = Shape{static_cast<ShapeElem>(size_of(args.batch_shape))};
}

/// c repeated along the rows: numbers to be added on the way out.
bool is_bias(const GemmArgs& args) {
  if (args.beta != 1 || args.type == Dtype::Val::float64 ||
      args.type == Dtype::Val::complex64) {
    return false;
  }
  const GemmOperand& c = args.c;
  bool one_row = (c.row_stride == 0 || args.rows == 1) && c.col_stride == 1;
  bool one_matrix = std::all_of(
      c.batch_strides.begin(), c.batch_strides.end(), [](int64_t stride) {
        return stride == 0;
      });
  return one_row && one_matrix && reinterpret_cast<uintptr_t>(c.data) % 16 == 0;
}

/// Offsets of the matrices of one call.
struct CallOffsets {
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
  int64_t out = 0;
};

CallOffsets call_offsets(
    const GemmArgs& args, const Strides& out, size_t even_axis, int64_t call) {
  CallOffsets at;
  for (size_t i = args.batch_shape.size(); i-- > 0;) {
    if (i == even_axis) {
      continue;
    }
    int64_t index = call % args.batch_shape[i];
    call /= args.batch_shape[i];
    at.a += index * args.a.batch_strides[i];
    at.b += index * args.b.batch_strides[i];
    at.c += args.beta == 0 ? 0 : index * args.c.batch_strides[i];
    at.out += index * out[i];
  }
  return at;
}

/// All calls for a product whose matrices lie as cuBLASLt wants them; false
/// when it cannot add the bias.
bool run_calls(
    const GemmArgs& args,
    const BlasMatrix& a,
    const BlasMatrix& b,
    const BlasMatrix* c,
    const void* bias,
    Encoder& e) {
  BatchPlan plan = plan_batch(args.batch_shape);
  size_t axes = args.batch_shape.size();
  Strides out(axes, args.rows * args.cols);
  for (size_t i = axes; i-- > 1;) {
    out[i - 1] = out[i] * args.batch_shape[i];
  }
  auto stride = [&](const Strides& strides) {
    return axes == 0 ? 0 : strides[plan.even_axis];
  };
  auto moved = [&](BlasMatrix x, int64_t offset, int64_t step, int64_t first) {
    x.data = advance(x.data, offset + first * step, args.type);
    x.batch_stride = step;
    return x;
  };
  BlasMatrix d{.data = args.out, .leading = args.cols};
  for (int64_t call = 0; call < plan.calls; ++call) {
    CallOffsets at = call_offsets(args, out, plan.even_axis, call);
    for (int64_t i = 0; i < plan.count; i += kMostBatch) {
      BlasProduct product{
          .op = args.op,
          .type = args.type,
          .m = args.cols,
          .n = args.rows,
          .k = args.depth,
          .count = std::min(kMostBatch, plan.count - i),
          .a = moved(b, at.b, stride(args.b.batch_strides), i),
          .b = moved(a, at.a, stride(args.a.batch_strides), i),
          .c = {},
          .d = moved(d, at.out, stride(out), i),
          .alpha = args.alpha,
          .beta = bias != nullptr ? 0 : args.beta,
          .bias = bias};
      product.c = c != nullptr
                      ? moved(*c, at.c, stride(args.c.batch_strides), i)
                      : product.d;
      if (!run_blas(product, e)) {
        return false;
      }
    }
  }
  return true;
}

void product_by_blas(GemmArgs args, Encoder& e) {
  std::vector<Scratch> kept;
  if (plan_batch(args.batch_shape).calls > kMostCalls) {
    flatten_batch(args, kept, e);
  }
  auto operand = [&](GemmOperand& x, int64_t rows, int64_t cols) {
    std::optional<BlasMatrix> as_is = as_blas(x, rows, cols);
    if (!as_is) {
      kept.push_back(copy_matrices(x, rows, cols, false, args, e));
      as_is = as_blas(x, rows, cols);
    }
    return *as_is;
  };
  BlasMatrix a = operand(args.a, args.rows, args.depth);
  BlasMatrix b = operand(args.b, args.depth, args.cols);
  if (args.beta == 0) {
    run_calls(args, a, b, nullptr, nullptr, e);
    return;
  }
  if (is_bias(args) && run_calls(args, a, b, nullptr, args.c.data, e)) {
    return;
  }
  std::optional<BlasMatrix> c = as_blas(args.c, args.rows, args.cols);
  if (c && !c->transposed) {
    run_calls(args, a, b, &*c, nullptr, e);
    return;
  }
  // The result begins as c.
  Shape shape = args.batch_shape;
  Strides from = args.c.batch_strides;
  shape.push_back(static_cast<ShapeElem>(args.rows));
  shape.push_back(static_cast<ShapeElem>(args.cols));
  from.push_back(args.c.row_stride);
  from.push_back(args.c.col_stride);
  scaled_copy(args.type, args.c.data, shape, from, 1, args.out, e);
  run_calls(args, a, b, nullptr, nullptr, e);
}

}  // namespace

void gemm(GemmArgs args, Encoder& e) {
  merge_batch(args);
  if (size_of(args.batch_shape) == 0 || args.rows == 0 || args.cols == 0) {
    return;
  }
  if (args.depth == 0) {
    empty_product(args, e);
  } else if (std::optional<GemvArgs> vector = as_gemv(args)) {
    gemv(*vector, e);
  } else {
    product_by_blas(std::move(args), e);
  }
}

}  // namespace mlx::core::cuda
