// Plans products with quantized matrices: few rows go through kernels that read
// the codes once at the speed of memory; for many rows the matrix is unpacked,
// which costs little beside the dense product that follows.
#include "backend/cuda/qmm.h"

#include "backend/cuda/gemm.h"
#include "backend/cuda/qmm_split.h"
#include "backend/cuda/qmv.h"

namespace mlx::core::cuda {

namespace {

/// Half types: the matrix in two parts, which float32 sums make one again.
void many_rows_of_halves(const QmmArgs& args, Encoder& e) {
  const QuantizedMatrix& w = args.w;
  int64_t depth = 2 * args.depth();
  size_t size = args.type.size();
  Scratch parts = e.scratch(2 * static_cast<size_t>(w.rows * w.cols) * size);
  Scratch x = e.scratch(static_cast<size_t>(args.rows * depth) * size);
  dequantize_split(w, args.transpose, parts.get(), e);
  repeat_for_split(args, x.get(), e);
  gemm(
      {.op = "quantized_matmul",
       .type = args.type,
       .rows = args.rows,
       .cols = args.cols(),
       .depth = depth,
       .a = {x.get(), depth, 1},
       .b =
           {parts.get(),
            args.transpose ? 1 : w.cols,
            args.transpose ? depth : 1},
       .out = args.out},
      e);
}

void many_rows(const QmmArgs& args, Encoder& e) {
  if (args.type != Dtype::Val::float32) {
    many_rows_of_halves(args, e);
    return;
  }
  const QuantizedMatrix& w = args.w;
  Scratch numbers =
      e.scratch(static_cast<size_t>(w.rows * w.cols) * args.type.size());
  dequantize(w, args.type, numbers.get(), e);
  GemmOperand b{
      numbers.get(), args.transpose ? 1 : w.cols, args.transpose ? w.cols : 1};
  gemm(
      {.op = "quantized_matmul",
       .type = args.type,
       .rows = args.rows,
       .cols = args.cols(),
       .depth = args.depth(),
       .a = {args.x, args.row_stride, args.col_stride},
       .b = b,
       .out = args.out},
      e);
}

// Bytes of codes up to which a launch of its own would gain nothing.
constexpr int64_t kBatchCodes = int64_t(8) << 20;

// Notes the product of one row in the encoder's list.
bool note_row(const QmmArgs& args, Encoder& e) {
  const QuantizedMatrix& w = args.w;
  auto x = reinterpret_cast<uintptr_t>(args.x);
  auto codes = reinterpret_cast<uintptr_t>(w.codes);
  if (args.rows != 1 || !args.transpose || args.col_stride != 1 ||
      w.cols > kBatchDepth || w.rows * w.cols / 8 * w.bits > kBatchCodes ||
      x % 16 != 0 || (w.bits == 8 && codes % 8 != 0) || !e.can_batch_wide()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::quantized_row;
  entry.types[0] = batch_type(args.type);
  entry.types[1] = batch_type(w.type);
  entry.size = static_cast<uint32_t>(w.rows);
  entry.quantized_row = {
      w.codes,
      w.scales,
      w.biases,
      args.x,
      args.out,
      static_cast<int32_t>(w.cols),
      static_cast<uint8_t>(w.bits),
      static_cast<uint8_t>(w.group_shift(8))};
  e.batch(entry);
  return true;
}

using Product = void (*)(const QmmArgs&, Encoder&);

/// The kernel for few rows, and how many it takes.
struct FewRows {
  Product product;
  int64_t most;
};

FewRows few_rows(const QmmArgs& args) {
  if (!args.transpose) {
    return {qvm, kQvmRows};
  }
  bool odd = args.w.bits != 4 && args.w.bits != 8;
  int64_t most = odd ? kQmvOddRows : kQmvRows;
  if (args.type == Dtype::Val::float16) {
    return {qmv_float16, most};
  }
  if (args.type == Dtype::Val::bfloat16) {
    return {qmv_bfloat16, most};
  }
  return {qmv_float32, kQmvFloatRows};
}

}  // namespace

void quantized_matmul(const QmmArgs& args, Encoder& e) {
  if (args.rows == 0 || args.cols() == 0) {
    return;
  }
  if (args.depth() == 0) {
    auto size = static_cast<size_t>(args.rows * args.cols());
    e.fill_bytes(args.out, 0, size * args.type.size());
    return;
  }
  if (note_row(args, e)) {
    return;
  }
  FewRows few = few_rows(args);
  if (args.rows <= few.most) {
    few.product(args, e);
  } else {
    many_rows(args, e);
  }
}

}  // namespace mlx::core::cuda
