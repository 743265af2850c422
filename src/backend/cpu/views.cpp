// View operations on the CPU: shared buffers where strides allow, else copies.
#include "backend/cpu/views.h"

#include "backend/common/view_plan.h"
#include "backend/cpu/copy.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

void as_strided(const AsStrided& op, const array& x, array& out) {
  array base = row_contiguous(x);
  share_view(
      base,
      {op.params().strides, static_cast<int64_t>(op.params().offset)},
      out);
}

void broadcast(const Broadcast& op, const array& x, array& out) {
  share_view(x, view_plan(op, x, out), out);
}

void expand_dims(const ExpandDims& op, const array& x, array& out) {
  share_view(x, view_plan(op, x, out), out);
}

void squeeze(const Squeeze& op, const array& x, array& out) {
  share_view(x, view_plan(op, x, out), out);
}

void transpose(const Transpose& op, const array& x, array& out) {
  share_view(x, view_plan(op, x, out), out);
}

void slice(const Slice& op, const array& x, array& out) {
  share_view(x, view_plan(op, x, out), out);
}

namespace {

void reshape_any(const array& x, array& out) {
  auto [needs_copy, strides] = prepare_reshape(x, out);
  if (needs_copy) {
    copy_strided(
        x.data<char>(),
        x.strides(),
        allocate_output(out),
        make_contiguous_strides(x.shape()),
        x.shape(),
        x.itemsize());
  } else {
    shared_buffer_reshape(x, strides, out);
  }
}

}  // namespace

void reshape(const Reshape&, const array& x, array& out) {
  reshape_any(x, out);
}
void flatten(const Flatten&, const array& x, array& out) {
  reshape_any(x, out);
}
void unflatten(const Unflatten&, const array& x, array& out) {
  reshape_any(x, out);
}

void contiguous(const Contiguous& op, const array& x, array& out) {
  bool enough = x.flags().row_contiguous ||
                (op.params().allow_col_major && x.flags().col_contiguous);
  // A small view of a large buffer is copied, so that the buffer can go.
  constexpr size_t kSlack = 16384;
  if (enough && x.buffer_size() <= out.nbytes() + kSlack) {
    out.copy_shared_buffer(x);
  } else {
    copy_into_new(x, out);
  }
}

// Arrays never change, so a copy may share.
void copy(const Copy&, const array& x, array& out) {
  out.copy_shared_buffer(x);
}

void stop_gradient(const StopGradient&, const array& x, array& out) {
  out.copy_shared_buffer(x);
}

void view(const View&, const array& x, array& out) {
  if (x.itemsize() == out.itemsize()) {
    out.copy_shared_buffer(x);
    return;
  }
  array whole = row_contiguous(x);
  array::Flags flags = whole.flags();
  out.copy_shared_buffer(
      whole, make_contiguous_strides(out.shape()), flags, out.size());
}

}  // namespace mlx::core::cpu
