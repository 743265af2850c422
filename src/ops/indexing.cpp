// Checks and batch helpers of the indexing operations.
#include "ops/indexing.h"

#include <algorithm>

#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core {

void check_index_type(const char* op, const array& indices) {
  if (!issubdtype(indices.dtype(), integer)) {
    invalid(
        op, "bad type of indices: ", indices.dtype(), ". Expected integers.");
  }
}

array indices_along_axis(const char* op, const array& indices, Stream s) {
  // Nothing is no float: an empty list has no other type.
  if (indices.size() == 0 && !issubdtype(indices.dtype(), integer)) {
    return astype(indices, int32, s);
  }
  check_index_type(op, indices);
  return indices;
}

Shape index_shape(const std::vector<array>& indices) {
  Shape shape;
  for (const array& i : indices) {
    shape = broadcast_shapes(shape, i.shape());
  }
  return shape;
}

bool is_empty(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

std::vector<int> index_axes(
    const char* op,
    const array& a,
    const std::vector<array>& indices,
    const std::vector<int>& axes) {
  if (axes.size() != indices.size()) {
    invalid(
        op,
        "axes and index arrays differ in number: ",
        axes.size(),
        " and ",
        indices.size(),
        ". Expected an axis for each.");
  }
  std::vector<int> found;
  for (size_t i = 0; i < axes.size(); ++i) {
    check_index_type(op, indices[i]);
    int axis = checked_axis(op, axes[i], static_cast<int>(a.ndim()));
    if (std::find(found.begin(), found.end(), axis) != found.end()) {
      invalid(op, "an axis is named twice: ", axes, ".");
    }
    found.push_back(axis);
  }
  return found;
}

void check_not_indices(
    const char* op, const std::vector<int>& argnums, int first, int last) {
  for (int argnum : argnums) {
    if (argnum >= first && argnum <= last) {
      invalid(
          op,
          "no derivative with respect to indices. Differentiate with respect "
          "to the values only, or put the indices through stop_gradient.");
    }
  }
}

array batch_positions(ShapeElem batch, int index_ndim, Stream s) {
  Shape shape(index_ndim + 1, 1);
  shape[0] = batch;
  return reshape(arange(0, batch, s), shape, s);
}

}  // namespace mlx::core
