// Joining by strided copies into parts of the output.
#include "backend/cuda/join.h"

#include "backend/cuda/copy.h"

namespace mlx::core::cuda {

namespace {

// Copies x to the part of out that begins at `offset` elements.
void copy_to_part(const array& x, array& out, int64_t offset, Encoder& e) {
  copy_strided(
      e.in(x),
      x.strides(),
      e.out<char>(out) + offset * static_cast<int64_t>(x.itemsize()),
      out.strides(),
      x.shape(),
      x.itemsize(),
      e);
}

}  // namespace

void concatenate(
    const Concatenate& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  e.allocate(out);
  int64_t offset = 0;
  for (const array& in : inputs) {
    if (in.size()) {
      copy_to_part(in, out, offset, e);
    }
    offset += in.shape(op.params().axis) * out.strides(op.params().axis);
  }
}

void pad(
    const Pad& op, const array& x, const array& value, array& out, Encoder& e) {
  e.allocate(out);
  copy_strided(
      e.in(value),
      Strides(out.ndim(), 0),
      e.out(out),
      out.strides(),
      out.shape(),
      out.itemsize(),
      e);
  int64_t offset = 0;
  for (size_t i = 0; i < x.ndim(); ++i) {
    offset += op.params().low[i] * out.strides()[i];
  }
  if (x.size()) {
    copy_to_part(x, out, offset, e);
  }
}

}  // namespace mlx::core::cuda
