// How each view operation sees its input's memory: strides, flags, offset.
// The same for every device.
#pragma once

#include "mlx/array.h"
#include "ops/views.h"

namespace mlx::core {

struct ViewPlan {
  Strides strides;
  /// In elements from the input's first.
  int64_t offset = 0;
};

ViewPlan view_plan(const Broadcast& op, const array& in, const array& out);
ViewPlan view_plan(const ExpandDims& op, const array& in, const array& out);
ViewPlan view_plan(const Squeeze& op, const array& in, const array& out);
ViewPlan view_plan(const Transpose& op, const array& in, const array& out);
ViewPlan view_plan(const Slice& op, const array& in, const array& out);

/// Makes `out` the view of `in` that a plan says.
void share_view(const array& in, const ViewPlan& plan, array& out);

}  // namespace mlx::core
