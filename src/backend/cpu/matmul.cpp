// Hands arrays to the matrix product as they lie in memory: transposed and
// strided operands are read through their strides, never copied first.
#include "backend/cpu/matmul.h"

#include "backend/cpu/copy.h"
#include "backend/cpu/gemm.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

/// The batch axes, merged where all operands walk them as one.
struct BatchAxes {
  std::vector<int64_t> shape;
  std::vector<std::vector<int64_t>> strides;

  explicit BatchAxes(const std::vector<const array*>& operands) {
    const array& first = *operands[0];
    if (first.ndim() == 2) {
      strides.resize(operands.size());
      return;
    }
    Shape leading(first.shape().begin(), first.shape().end() - 2);
    std::vector<Strides> walks;
    for (const array* x : operands) {
      walks.emplace_back(x->strides().begin(), x->strides().end() - 2);
    }
    auto [merged, merged_walks] = collapse_contiguous_dims(leading, walks);
    shape.assign(merged.begin(), merged.end());
    for (const Strides& walk : merged_walks) {
      strides.emplace_back(walk.begin(), walk.end());
    }
  }
};

/// The stride of an axis of length 1 is free: such a matrix is taken for a
/// contiguous one.
GemmOperand as_operand(const array& x, const std::vector<int64_t>& batch) {
  bool one_row = x.shape(-2) == 1;
  bool one_col = x.shape(-1) == 1;
  int64_t row = one_row ? x.shape(-1) : x.strides(-2);
  int64_t col = one_col ? 1 : x.strides(-1);
  return {x.data<char>(), row, col, batch};
}

void multiply(
    const array& a,
    const array& b,
    const array* c,
    float alpha,
    float beta,
    array& out) {
  char* to = allocate_output(out);
  if (out.size() == 0) {
    return;
  }
  std::vector<const array*> operands = {&a, &b};
  if (c) {
    operands.push_back(c);
  }
  BatchAxes batch(operands);
  GemmArgs args{
      .type = out.dtype(),
      .rows = a.shape(-2),
      .cols = b.shape(-1),
      .depth = a.shape(-1),
      .a = as_operand(a, batch.strides[0]),
      .b = as_operand(b, batch.strides[1]),
      .out = to,
      .alpha = alpha,
      .beta = beta,
      .batch_shape = batch.shape};
  if (c) {
    args.c = as_operand(*c, batch.strides[2]);
  }
  gemm(args);
}

}  // namespace

void matmul(const Matmul&, const array& a, const array& b, array& out) {
  multiply(a, b, nullptr, 1, 0, out);
}

void addmm(
    const AddMM& op,
    const array& a,
    const array& b,
    const array& c,
    array& out) {
  multiply(a, b, &c, op.params().alpha, op.params().beta, out);
}

}  // namespace mlx::core::cpu
