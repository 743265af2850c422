// Operations along the last axis that have kernels of their own, and are also
// compositions of elementwise operations and reductions: as such they join
// their neighbours in a compiled function.
#pragma once

#include <vector>

#include "mlx/array.h"

namespace mlx::core {

class RowWise {
 public:
  virtual ~RowWise() = default;
  /// The same result, up to rounding, from elementwise operations and
  /// reductions of the last axis.
  virtual array compose(const std::vector<array>& inputs) const = 0;
};

}  // namespace mlx::core
