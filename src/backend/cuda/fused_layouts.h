// How the arrays of a fused part lie: the axes that a kernel walks, and the
// layouts of its form. No header of CUDA here, so that tests need none.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/cuda/fused_text.h"
#include "mlx/array.h"

namespace mlx::core::cuda {

inline size_t element_count(const Shape& shape) {
  size_t count = 1;
  for (ShapeElem n : shape) {
    count *= static_cast<size_t>(n);
  }
  return count;
}

/// One element, perhaps repeated.
inline bool is_number(const array& a) {
  return a.size() == 1 || a.data_size() == 1;
}

/// The axes of an iteration shape, merged where all arrays walk them as one,
/// and the strides of those that do not lie in its order. Fills in the layouts
/// of a form.
class FusedLayouts {
 public:
  FusedLayouts() = default;
  /// With `keeps_last` the last axis, that of rows, is not merged with others.
  FusedLayouts(
      const Shape& shape,
      const std::vector<array>& inputs,
      const std::vector<array>& outputs,
      FusedForm& form,
      bool keeps_last = false);

  /// Elements that 32 bits count, blocks' ends included.
  static constexpr size_t kMostNarrow = (size_t(1) << 31) - (1 << 20);

  const Shape& sizes() const { return sizes_; }
  /// Of layouts from 1 on.
  const std::vector<Strides>& strides() const { return layouts_; }
  /// How N elements along the last axis are read.
  FusedRead read_of(int layout, int pack, bool is_aligned) const;

 private:
  uint16_t layout_of(const Strides& strides);
  bool is_narrow(size_t size) const;

  Shape sizes_;
  Strides dense_;
  std::vector<Strides> layouts_;
};

}  // namespace mlx::core::cuda
