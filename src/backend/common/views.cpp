// Views by plan.
#include "backend/common/views.h"

namespace mlx::core::common {

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

void copy(const Copy&, const array& x, array& out) {
  out.copy_shared_buffer(x);
}

void stop_gradient(const StopGradient&, const array& x, array& out) {
  out.copy_shared_buffer(x);
}

void split(
    const Split& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  const array& x = inputs[0];
  const auto& [indices, axis] = op.params();
  for (size_t i = 0; i < outputs.size(); ++i) {
    int64_t start = i ? indices[i - 1] : 0;
    share_view(x, {x.strides(), start * x.strides(axis)}, outputs[i]);
  }
}

void depends(
    const Depends&,
    const std::vector<array>& inputs,
    std::vector<array>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].copy_shared_buffer(inputs[i]);
  }
}

}  // namespace mlx::core::common
