// Operations that share their input's memory, the same on every device. Those
// that must copy where strides do not allow a view take the device's copy.
#pragma once

#include <vector>

#include "backend/common/view_plan.h"
#include "mlx/backend/common/utils.h"
#include "ops/join.h"
#include "ops/views.h"

namespace mlx::core::common {

void broadcast(const Broadcast& op, const array& x, array& out);
void expand_dims(const ExpandDims& op, const array& x, array& out);
void squeeze(const Squeeze& op, const array& x, array& out);
void transpose(const Transpose& op, const array& x, array& out);
void slice(const Slice& op, const array& x, array& out);
/// Arrays never change, so a copy may share.
void copy(const Copy& op, const array& x, array& out);
void stop_gradient(const StopGradient& op, const array& x, array& out);
void split(
    const Split& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs);
void depends(
    const Depends& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs);

/// Adds all of the above to a backend's table.
template <typename Table>
void add_views(Table& table) {
  table.template add_view<Broadcast, broadcast>();
  table.template add_view<ExpandDims, expand_dims>();
  table.template add_view<Squeeze, squeeze>();
  table.template add_view<Transpose, transpose>();
  table.template add_view<Slice, slice>();
  table.template add_view<Copy, copy>();
  table.template add_view<StopGradient, stop_gradient>();
  table.template add_view<Split, split>();
  table.template add_view<Depends, depends>();
}

/// `row_contiguous(x)` is x or a row-major copy of it.
template <typename F>
void as_strided(
    const AsStrided& op, const array& x, array& out, F row_contiguous) {
  const auto& [shape, strides, offset] = op.params();
  array base = row_contiguous(x);
  share_view(base, {strides, static_cast<int64_t>(offset)}, out);
}

/// `copy_elements(x, out)` fills a new row-major out, of another shape, with
/// x's elements in row-major order.
template <typename F>
void reshape(const array& x, array& out, F copy_elements) {
  auto [needs_copy, strides] = prepare_reshape(x, out);
  if (needs_copy) {
    copy_elements(x, out);
  } else {
    shared_buffer_reshape(x, strides, out);
  }
}

template <typename F>
void contiguous(
    const Contiguous& op, const array& x, array& out, F copy_elements) {
  bool enough = x.flags().row_contiguous ||
                (op.params().allow_col_major && x.flags().col_contiguous);
  // A small view of a large buffer is copied, so that the buffer can go.
  constexpr size_t kSlack = 16384;
  if (enough && x.buffer_size() <= out.nbytes() + kSlack) {
    out.copy_shared_buffer(x);
  } else {
    copy_elements(x, out);
  }
}

template <typename F>
void view(const array& x, array& out, F row_contiguous) {
  if (x.itemsize() == out.itemsize()) {
    out.copy_shared_buffer(x);
    return;
  }
  array whole = row_contiguous(x);
  array::Flags flags = whole.flags();
  out.copy_shared_buffer(
      whole, make_contiguous_strides(out.shape()), flags, out.size());
}

}  // namespace mlx::core::common
