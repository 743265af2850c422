// Sorting and merging of the axes of a reduction.
#include "backend/common/reduce_plan.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "mlx/backend/common/utils.h"

namespace mlx::core {

namespace {

// Larger strides first. Stride 0 counts as the largest: a repeated axis must
// not become the innermost one.
bool is_outer(int64_t a, int64_t b) {
  if ((a == 0) != (b == 0)) {
    return a == 0;
  }
  return std::abs(a) > std::abs(b);
}

std::vector<PlanAxis> merged(const std::vector<PlanAxis>& axes) {
  std::vector<PlanAxis> out;
  for (const PlanAxis& axis : axes) {
    if (!out.empty() && out.back().stride == axis.stride * axis.size) {
      out.back() = {out.back().size * axis.size, axis.stride};
    } else {
      out.push_back(axis);
    }
  }
  return out;
}

}  // namespace

int64_t count(const std::vector<PlanAxis>& axes) {
  int64_t n = 1;
  for (const PlanAxis& axis : axes) {
    n *= axis.size;
  }
  return n;
}

int64_t offset_of(const std::vector<PlanAxis>& axes, int64_t index) {
  int64_t offset = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    offset += index % axes[i].size * axes[i].stride;
    index /= axes[i].size;
  }
  return offset;
}

ReducePlan reduce_plan(const array& x, const std::vector<int>& axes) {
  ReducePlan plan;
  Shape out_shape = x.shape();
  for (int axis : axes) {
    out_shape[axis] = 1;
  }
  plan.out_strides = make_contiguous_strides(out_shape);
  std::vector<int> order(x.ndim());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return is_outer(x.strides()[a], x.strides()[b]);
  });
  int64_t out_stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    int axis = order[i];
    if (x.shape()[axis] == 1) {
      continue;
    }
    PlanAxis plan_axis{x.shape()[axis], x.strides()[axis]};
    bool is_kept = out_shape[axis] != 1;
    auto& list = is_kept ? plan.kept : plan.reduced;
    list.insert(list.begin(), plan_axis);
    if (is_kept) {
      plan.out_strides[axis] = out_stride;
      out_stride *= plan_axis.size;
    }
  }
  plan.kept = merged(plan.kept);
  plan.reduced = merged(plan.reduced);
  if (plan.kept.empty()) {
    plan.kept.push_back({1, 0});
    plan.kind = ReducePlan::rows;
  } else {
    plan.kind =
        plan.reduced.empty() ||
                is_outer(plan.reduced.back().stride, plan.kept.back().stride)
            ? ReducePlan::columns
            : ReducePlan::rows;
  }
  if (plan.reduced.empty()) {
    plan.reduced.push_back({1, 0});
  }
  return plan;
}

}  // namespace mlx::core
