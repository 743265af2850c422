// View operations on the device that copy where strides allow no view.
#include "backend/cuda/views.h"

#include "backend/common/views.h"
#include "backend/cuda/copy.h"

namespace mlx::core::cuda {

namespace {

auto copier(Encoder& e) {
  return [&e](const array& x, array& out) {
    e.allocate(out);
    copy_strided(
        e.in(x),
        x.strides(),
        e.out(out),
        make_contiguous_strides(x.shape()),
        x.shape(),
        x.itemsize(),
        e);
  };
}

auto row_maker(Encoder& e) {
  return [&e](const array& x) { return row_contiguous(x, e); };
}

}  // namespace

void as_strided(const AsStrided& op, const array& x, array& out, Encoder& e) {
  common::as_strided(op, x, out, row_maker(e));
}
void reshape(const Reshape&, const array& x, array& out, Encoder& e) {
  common::reshape(x, out, copier(e));
}
void flatten(const Flatten&, const array& x, array& out, Encoder& e) {
  common::reshape(x, out, copier(e));
}
void unflatten(const Unflatten&, const array& x, array& out, Encoder& e) {
  common::reshape(x, out, copier(e));
}
void contiguous(const Contiguous& op, const array& x, array& out, Encoder& e) {
  common::contiguous(op, x, out, copier(e));
}
void view(const View&, const array& x, array& out, Encoder& e) {
  common::view(x, out, row_maker(e));
}

}  // namespace mlx::core::cuda
