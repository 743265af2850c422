// Strides of views.
#include "backend/common/view_plan.h"

#include <algorithm>

#include "mlx/backend/common/utils.h"

namespace mlx::core {

ViewPlan view_plan(const Broadcast&, const array& in, const array& out) {
  Strides strides(out.ndim(), 0);
  size_t extra = out.ndim() - in.ndim();
  for (size_t i = 0; i < in.ndim(); ++i) {
    strides[i + extra] = in.shape()[i] == 1 ? 0 : in.strides()[i];
  }
  return {std::move(strides)};
}

ViewPlan view_plan(const ExpandDims& op, const array& in, const array&) {
  Strides strides = in.strides();
  for (int axis : op.params().axes) {
    // Any stride serves an axis of length 1.
    strides.insert(strides.begin() + axis, 1);
  }
  return {std::move(strides)};
}

ViewPlan view_plan(const Squeeze& op, const array& in, const array&) {
  Strides strides;
  for (int i : remaining_axes(static_cast<int>(in.ndim()), op.params().axes)) {
    strides.push_back(in.strides()[i]);
  }
  return {std::move(strides)};
}

ViewPlan view_plan(const Transpose& op, const array& in, const array&) {
  Strides strides;
  for (int axis : op.params().axes) {
    strides.push_back(in.strides()[axis]);
  }
  return {std::move(strides)};
}

ViewPlan view_plan(const Slice& op, const array& in, const array&) {
  ViewPlan plan;
  const SliceParams& slice = op.params();
  for (size_t i = 0; i < in.ndim(); ++i) {
    plan.strides.push_back(in.strides()[i] * slice.strides[i]);
    plan.offset += in.strides()[i] * slice.start[i];
  }
  return plan;
}

void share_view(const array& in, const ViewPlan& plan, array& out) {
  auto [reached, row, column] = check_contiguity(out.shape(), plan.strides);
  // A view that reaches as many elements as a whole, gapless input does is
  // gapless too, unless it runs backwards: then its elements lie before the
  // first one. A row- or column-major one always is.
  bool forward =
      std::all_of(plan.strides.begin(), plan.strides.end(), [](int64_t stride) {
        return stride >= 0;
      });
  bool whole = forward && in.flags().contiguous && reached == in.data_size();
  array::Flags flags{whole || row || column, row, column};
  size_t data_size = whole ? in.data_size() : reached;
  out.copy_shared_buffer(
      in, plan.strides, flags, data_size, out.size() ? plan.offset : 0);
}

}  // namespace mlx::core
