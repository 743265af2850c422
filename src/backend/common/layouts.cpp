// Comparing and combining strides.
#include "backend/common/layouts.h"

namespace mlx::core {

const array* common_layout(const std::vector<array>& inputs, const array& out) {
  const array* found = nullptr;
  for (const array& in : inputs) {
    if (in.size() == 1) {
      continue;
    }
    if (in.shape() != out.shape() || !in.flags().contiguous ||
        in.data_size() != in.size() ||
        (found && in.strides() != found->strides())) {
      return nullptr;
    }
    found = found ? found : &in;
  }
  return found;
}

Strides broadcast_strides(const array& a, const Shape& shape) {
  Strides strides(shape.size(), 0);
  size_t extra = shape.size() - a.ndim();
  for (size_t i = 0; i < a.ndim(); ++i) {
    strides[i + extra] = a.shape()[i] == 1 ? 0 : a.strides()[i];
  }
  return strides;
}

int64_t even_row_stride(const array& x) {
  int64_t rows = x.shape(-2);
  int64_t stride = x.strides(-2);
  for (int axis = static_cast<int>(x.ndim()) - 3; axis >= 0; --axis) {
    if (x.shape(axis) == 1) {
      continue;
    }
    if (rows == 1) {
      stride = x.strides(axis);
    } else if (x.strides(axis) != rows * stride) {
      return 0;
    }
    rows *= x.shape(axis);
  }
  return rows == 1 ? x.shape(-1) : stride;
}

}  // namespace mlx::core
