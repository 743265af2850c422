// Hands arrays to the matrix product as they lie in memory: transposed and
// strided operands are read through their strides.
#include "backend/cuda/matmul.h"

#include "backend/cuda/gemm.h"
#include "mlx/backend/common/utils.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

Strides leading_strides(const array& x) {
  return Strides(x.strides().begin(), x.strides().end() - 2);
}

void check_type(const char* op, Dtype type) {
  if (!issubdtype(type, inexact)) {
    invalid(
        op,
        "the type is not inexact: ",
        type,
        ". Expected a floating or complex type.");
  }
}

void multiply(
    const char* op,
    const array& a,
    const array& b,
    const array* c,
    float alpha,
    float beta,
    array& out,
    Encoder& e) {
  check_type(op, out.dtype());
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  auto operand = [&](const array& x) {
    return GemmOperand{
        x.size() > 0 ? e.in(x) : nullptr,
        x.strides(-2),
        x.strides(-1),
        leading_strides(x)};
  };
  GemmArgs args{
      .op = op,
      .type = out.dtype(),
      .rows = a.shape(-2),
      .cols = b.shape(-1),
      .depth = a.shape(-1),
      .a = operand(a),
      .b = operand(b),
      .out = e.out(out),
      .alpha = alpha,
      .beta = c != nullptr ? beta : 0};
  if (args.beta != 0) {
    args.c = operand(*c);
  }
  if (a.ndim() > 2) {
    std::vector<Strides> walks = {args.a.batch_strides, args.b.batch_strides};
    if (args.beta != 0) {
      walks.push_back(args.c.batch_strides);
    }
    Shape leading(a.shape().begin(), a.shape().end() - 2);
    auto [merged, merged_walks] = collapse_contiguous_dims(leading, walks);
    args.batch_shape = merged;
    args.a.batch_strides = merged_walks[0];
    args.b.batch_strides = merged_walks[1];
    if (args.beta != 0) {
      args.c.batch_strides = merged_walks[2];
    }
  }
  gemm(std::move(args), e);
}

}  // namespace

void matmul(
    const Matmul&, const array& a, const array& b, array& out, Encoder& e) {
  multiply("matmul", a, b, nullptr, 1, 0, out, e);
}

void addmm(
    const AddMM& op,
    const array& a,
    const array& b,
    const array& c,
    array& out,
    Encoder& e) {
  const AddMMParams& p = op.params();
  multiply("addmm", a, b, &c, p.alpha, p.beta, out, e);
}

}  // namespace mlx::core::cuda
