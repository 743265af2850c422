// Diagonals: reads and writes at pairs of positions, so that no copy of the
// whole array is made and derivatives and batches follow from gather and
// scatter.
#include <algorithm>
#include <cstdlib>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core {

namespace {

// Of the matrix with `rows` and `columns`: how many elements its diagonal has.
int diagonal_length(int rows, int columns, int offset) {
  int64_t length = std::min<int64_t>(
      int64_t{rows} + std::min(offset, 0),
      int64_t{columns} - std::max(offset, 0));
  return static_cast<int>(std::max<int64_t>(length, 0));
}

// The positions along the rows and along the columns.
std::vector<array> diagonal_positions(
    int length, int offset, StreamOrDevice s) {
  int row = std::max(-offset, 0);
  int column = std::max(offset, 0);
  return {arange(row, row + length, s), arange(column, column + length, s)};
}

}  // namespace

array diagonal(
    const array& a, int offset, int axis1, int axis2, StreamOrDevice s) {
  MLX_POSTPONE("diagonal", diagonal(in[0], offset, axis1, axis2, s), a);
  int ndim = static_cast<int>(a.ndim());
  if (ndim < 2) {
    invalid("diagonal", "an array of ", ndim, " dimensions. Expected 2.");
  }
  axis1 = checked_reduction_axis("diagonal", axis1, ndim);
  axis2 = checked_reduction_axis("diagonal", axis2, ndim);
  if (axis1 == axis2) {
    invalid("diagonal", "axis ", axis1, " is named twice.");
  }
  Shape sizes = a.shape();
  int length = diagonal_length(sizes[axis1], sizes[axis2], offset);
  sizes[axis1] = 1;
  sizes[axis2] = 1;
  if (length == 0) {
    sizes.erase(sizes.begin() + std::max(axis1, axis2));
    sizes.erase(sizes.begin() + std::min(axis1, axis2));
    sizes.push_back(0);
    return zeros(sizes, a.dtype(), s);
  }
  array found = gather(
      a, diagonal_positions(length, offset, s), {axis1, axis2}, sizes, s);
  return moveaxis(squeeze(found, {axis1 + 1, axis2 + 1}, s), 0, -1, s);
}

array diag(const array& a, int k, StreamOrDevice s) {
  MLX_POSTPONE("diag", diag(in[0], k, s), a);
  if (a.ndim() == 2) {
    return diagonal(a, k, 0, 1, s);
  }
  if (a.ndim() != 1) {
    invalid("diag", "an array of ", a.ndim(), " dimensions. Expected 1 or 2.");
  }
  int length = a.shape(0);
  int n = safe_cast(int64_t{length} + std::abs(int64_t{k}), "diag");
  array empty = zeros({n, n}, a.dtype(), s);
  if (length == 0) {
    return empty;
  }
  return scatter(
      empty,
      diagonal_positions(length, k, s),
      reshape(a, {length, 1, 1}, s),
      {0, 1},
      s);
}

array trace(
    const array& a,
    int offset,
    int axis1,
    int axis2,
    Dtype dtype,
    StreamOrDevice s) {
  array sums =
      sum(astype(diagonal(a, offset, axis1, axis2, s), dtype, s), -1, false, s);
  return astype(sums, dtype, s);
}

array trace(
    const array& a, int offset, int axis1, int axis2, StreamOrDevice s) {
  return sum(diagonal(a, offset, axis1, axis2, s), -1, false, s);
}

array trace(const array& a, StreamOrDevice s) {
  return trace(a, 0, 0, 1, s);
}

}  // namespace mlx::core
