// How a reduction walks its input: which axis is innermost, how the kept axes
// lie in the output. The same for every device.
#pragma once

#include <vector>

#include "mlx/array.h"

namespace mlx::core {

struct PlanAxis {
  int64_t size;
  int64_t stride;
};

/// Axes are ordered from the largest stride to the smallest and merged where
/// memory allows. The output is laid out in the order of `kept`, which need
/// not be row-major: a transposed input gives a transposed output, and both
/// are walked in memory order.
struct ReducePlan {
  enum Kind {
    /// The innermost axis is combined: the last of `reduced`.
    rows,
    /// The innermost axis is kept: the last of `kept`.
    columns,
  };
  Kind kind;
  std::vector<PlanAxis> kept;
  std::vector<PlanAxis> reduced;
  /// The strides of the output, in which reduced axes have length 1.
  Strides out_strides;

  const PlanAxis& inner() const {
    return kind == rows ? reduced.back() : kept.back();
  }
};

/// `axes` are sorted and counted from 0; the array is not empty.
ReducePlan reduce_plan(const array& x, const std::vector<int>& axes);

/// The number of positions of some axes.
int64_t count(const std::vector<PlanAxis>& axes);

/// The offset in elements of position `index` in row-major order.
int64_t offset_of(const std::vector<PlanAxis>& axes, int64_t index);

}  // namespace mlx::core
