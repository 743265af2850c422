// Iteration over the first axis, which needs operations.
#include "mlx/ops/shape.h"
#include "types/error.h"

namespace mlx::core {

array::ArrayIterator::ArrayIterator(const array& arr, int idx)
    : arr_(arr), idx_(idx) {
  if (arr.ndim() == 0) {
    invalid("iterate", "a 0-d array has no axis to iterate over.");
  }
}

array::ArrayIterator::reference array::ArrayIterator::operator*() const {
  Shape start(arr_.ndim(), 0);
  Shape stop = arr_.shape();
  start[0] = idx_;
  stop[0] = idx_ + 1;
  return squeeze(slice(arr_, start, stop), 0);
}

}  // namespace mlx::core
