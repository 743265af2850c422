// View operations on the CPU that copy where strides allow no view.
#include "backend/cpu/views.h"

#include "backend/common/views.h"
#include "backend/cpu/copy.h"

namespace mlx::core::cpu {

namespace {

// Out may have another shape.
void copy_elements(const array& x, array& out) {
  copy_strided(
      x.data<char>(),
      x.strides(),
      allocate_output(out),
      make_contiguous_strides(x.shape()),
      x.shape(),
      x.itemsize());
}

}  // namespace

void as_strided(const AsStrided& op, const array& x, array& out) {
  common::as_strided(op, x, out, row_contiguous);
}
void reshape(const Reshape&, const array& x, array& out) {
  common::reshape(x, out, copy_elements);
}
void flatten(const Flatten&, const array& x, array& out) {
  common::reshape(x, out, copy_elements);
}
void unflatten(const Unflatten&, const array& x, array& out) {
  common::reshape(x, out, copy_elements);
}
void contiguous(const Contiguous& op, const array& x, array& out) {
  common::contiguous(op, x, out, copy_elements);
}
void view(const View&, const array& x, array& out) {
  common::view(x, out, row_contiguous);
}

}  // namespace mlx::core::cpu
