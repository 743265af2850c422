// Hands quantized arrays to the kernels on addresses. Codes, scales and biases
// are read where they lie if their rows follow each other, which weights always
// do.
#include "backend/cuda/quantized.h"

#include "backend/common/layouts.h"
#include "backend/cuda/copy.h"
#include "backend/cuda/qmm.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cuda {

namespace {

/// x with its last two axes row-major; leading axes may have any strides.
array with_contiguous_matrices(const array& x, Encoder& e) {
  bool last = x.strides(-1) == 1 || x.shape(-1) == 1;
  bool rows = x.strides(-2) == x.shape(-1) || x.shape(-2) == 1;
  return last && rows ? x : row_contiguous(x, e);
}

/// The matrix of a batch index.
const void* matrix_at(const array& x, int64_t batch, Encoder& e) {
  Shape shape(x.shape().begin(), x.shape().end() - 2);
  Strides strides(x.strides().begin(), x.strides().end() - 2);
  int64_t offset = elem_to_loc(batch, shape, strides);
  return e.in<char>(x) + offset * static_cast<int64_t>(x.itemsize());
}

void one_matrix(QmmArgs args, array x, array& out, Encoder& e) {
  args.row_stride = even_row_stride(x);
  if (args.row_stride == 0) {
    x = row_contiguous(x, e);
    args.row_stride = x.shape(-1);
    args.col_stride = 1;
  }
  args.rows = static_cast<int64_t>(out.size()) / out.shape(-1);
  args.x = e.in(x);
  args.out = e.out(out);
  quantized_matmul(args, e);
}

}  // namespace

void quantized_matmul(
    const QuantizedMatmul& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  const array& x = inputs[0];
  if (x.size() == 0) {
    e.fill_bytes(e.out(out), 0, out.nbytes());
    return;
  }
  array w = with_contiguous_matrices(inputs[1], e);
  array scales = with_contiguous_matrices(inputs[2], e);
  array biases = with_contiguous_matrices(inputs[3], e);
  const QuantizedMatmulParams& p = op.params();
  QmmArgs args{
      .w =
          {.codes = e.in<uint32_t>(w),
           .scales = e.in(scales),
           .biases = e.in(biases),
           .type = scales.dtype(),
           .bits = p.bits,
           .group_size = p.group_size,
           .rows = w.shape(-2),
           .cols = int64_t{scales.shape(-1)} * p.group_size},
      .transpose = p.transpose,
      .x = nullptr,
      .row_stride = x.strides(-2),
      .col_stride = x.shape(-1) == 1 ? 1 : x.strides(-1),
      .type = out.dtype(),
      .rows = x.shape(-2),
      .out = nullptr};
  if (w.ndim() == 2) {
    one_matrix(args, x, out, e);
    return;
  }
  int64_t step = int64_t{out.shape(-2)} * out.shape(-1);
  for (int64_t i = 0; i < static_cast<int64_t>(out.size()) / step; ++i) {
    args.w.codes = static_cast<const uint32_t*>(matrix_at(w, i, e));
    args.w.scales = matrix_at(scales, i, e);
    args.w.biases = matrix_at(biases, i, e);
    args.x = matrix_at(x, i, e);
    args.out = e.out<char>(out) + i * step * int64_t(out.itemsize());
    quantized_matmul(args, e);
  }
}

}  // namespace mlx::core::cuda
