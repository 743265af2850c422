// How operands lie beside each other, the same on every device.
#pragma once

#include <vector>

#include "mlx/array.h"

namespace mlx::core {

/// Arrays of one layout without gaps can be walked in the order of memory,
/// whatever that order is: an input with the layout, or null if they differ.
/// Single elements go with any.
const array* common_layout(const std::vector<array>& inputs, const array& out);

/// Strides of `a` seen with `shape`, to which it broadcasts.
Strides broadcast_strides(const array& a, const Shape& shape);

/// Leading axes of x as walked by the rows of a matrix: the stride of a row,
/// or 0 when they are not evenly spaced.
int64_t even_row_stride(const array& x);

}  // namespace mlx::core
