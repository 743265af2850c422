// The axes before and after one that is treated apart, merged where all
// operands allow it.
#pragma once

#include <limits>
#include <tuple>
#include <vector>

#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

struct AxisPlan {
  Shape outer_shape;
  Shape inner_shape;
  /// One entry an operand.
  std::vector<Strides> outer;
  std::vector<Strides> inner;
  int64_t outer_size = 1;
  int64_t inner_size = 1;

  AxisPlan(const Shape& shape, const std::vector<Strides>& strides, int axis) {
    auto part = [&](int begin, int end) {
      std::vector<Strides> cut;
      for (const Strides& s : strides) {
        cut.emplace_back(s.begin() + begin, s.begin() + end);
      }
      return collapse_contiguous_dims(
          Shape(shape.begin() + begin, shape.begin() + end),
          cut,
          std::numeric_limits<int32_t>::max());
    };
    std::tie(outer_shape, outer) = part(0, axis);
    std::tie(inner_shape, inner) =
        part(axis + 1, static_cast<int>(shape.size()));
    for (ShapeElem n : outer_shape) {
      outer_size *= n;
    }
    for (ShapeElem n : inner_shape) {
      inner_size *= n;
    }
  }

  /// Whether an operand is the same along all inner axes.
  bool is_shared(size_t operand) const {
    for (int64_t s : inner[operand]) {
      if (s != 0) {
        return false;
      }
    }
    return true;
  }
};

}  // namespace mlx::core::cpu
