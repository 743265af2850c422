// Hands quantized arrays to the raw kernels. Codes, scales and biases are read
// where they lie if their rows follow each other, which weights always do.
#include "backend/cpu/quantized.h"

#include "backend/common/layouts.h"
#include "backend/cpu/copy.h"
#include "backend/cpu/qmm.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

/// x with its last two axes row-major; leading axes may have any strides.
array with_contiguous_matrices(const array& x) {
  bool last = x.strides(-1) == 1 || x.shape(-1) == 1;
  bool rows = x.strides(-2) == x.shape(-1) || x.shape(-2) == 1;
  return last && rows ? x : row_contiguous(x);
}

int64_t bytes_at(const array& x, int64_t batch) {
  Shape shape(x.shape().begin(), x.shape().end() - 2);
  Strides strides(x.strides().begin(), x.strides().end() - 2);
  return elem_to_loc(batch, shape, strides) * int64_t(x.itemsize());
}

QuantizedMatrix as_matrix(
    const array& w,
    const array& scales,
    const array& biases,
    int group_size,
    int bits) {
  return {
      .codes = w.data<char>(),
      .scales = scales.data<char>(),
      .biases = biases.data<char>(),
      .type = scales.dtype(),
      .bits = bits,
      .group_size = group_size,
      .rows = w.shape(-2),
      .cols = int64_t{scales.shape(-1)} * group_size};
}

}  // namespace

void quantize(
    const Quantize& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  array w = row_contiguous(inputs[0]);
  uint32_t* codes = allocate_output<uint32_t>(outputs[0]);
  char* scales = allocate_output(outputs[1]);
  char* biases = allocate_output(outputs[2]);
  quantize(
      w.data<char>(),
      w.dtype(),
      int64_t(outputs[1].size()),
      op.params().group_size,
      op.params().bits,
      codes,
      scales,
      biases);
}

void dequantize(
    const Dequantize& op,
    const array& w,
    const array& scales,
    const array& biases,
    array& out) {
  array codes = row_contiguous(w);
  array by = row_contiguous(scales);
  array from = row_contiguous(biases);
  char* to = allocate_output(out);
  QuantizedMatrix matrix =
      as_matrix(codes, by, from, op.params().group_size, op.params().bits);
  matrix.rows = matrix.cols == 0 ? 0 : int64_t(out.size()) / matrix.cols;
  dequantize(matrix, out.dtype(), to);
}

void quantized_matmul(
    const QuantizedMatmul& op, const std::vector<array>& inputs, array& out) {
  char* to = allocate_output(out);
  if (out.size() == 0) {
    return;
  }
  array x = inputs[0];
  array w = with_contiguous_matrices(inputs[1]);
  array scales = with_contiguous_matrices(inputs[2]);
  array biases = with_contiguous_matrices(inputs[3]);
  const auto& p = op.params();
  QmmArgs args{
      .w = as_matrix(w, scales, biases, p.group_size, p.bits),
      .transpose = p.transpose,
      .x = nullptr,
      .row_stride = x.strides(-2),
      .col_stride = x.shape(-1) == 1 ? 1 : x.strides(-1),
      .type = out.dtype(),
      .rows = x.shape(-2),
      .out = nullptr};
  if (w.ndim() == 2) {
    // All rows of x meet the same matrix.
    args.row_stride = even_row_stride(x);
    if (args.row_stride == 0) {
      x = row_contiguous(x);
      args.row_stride = x.shape(-1);
      args.col_stride = 1;
    }
    args.rows = int64_t(out.size()) / out.shape(-1);
    args.x = x.data<char>();
    args.out = to;
    quantized_matmul(args);
    return;
  }
  int64_t step = int64_t{out.shape(-2)} * out.shape(-1);
  for (int64_t i = 0; i < int64_t(out.size()) / step; ++i) {
    auto at = [i](const array& y) { return y.data<char>() + bytes_at(y, i); };
    args.w.codes = at(w);
    args.w.scales = at(scales);
    args.w.biases = at(biases);
    args.x = at(x);
    args.out = to + i * step * int64_t(out.itemsize());
    quantized_matmul(args);
  }
}

}  // namespace mlx::core::cpu
