// Operations that combine the elements along axes. Without axes all elements
// are combined; `keepdims` keeps reduced axes with length 1. An axis out of
// range raises AxisRangeError (a std::out_of_range), a repeated one
// std::invalid_argument.
#pragma once

#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// Whether all elements are not zero, bool.
MLX_API array all(const array& a, bool keepdims, StreamOrDevice s = {});
inline array all(const array& a, StreamOrDevice s = {}) {
  return all(a, false, s);
}
MLX_API array
all(const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
all(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// Whether any element is not zero, bool.
MLX_API array any(const array& a, bool keepdims, StreamOrDevice s = {});
inline array any(const array& a, StreamOrDevice s = {}) {
  return any(a, false, s);
}
MLX_API array
any(const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
any(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The sum; bool and small integers add up in int32 or uint32.
MLX_API array sum(const array& a, bool keepdims, StreamOrDevice s = {});
inline array sum(const array& a, StreamOrDevice s = {}) {
  return sum(a, false, s);
}
MLX_API array
sum(const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
sum(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The product; types as sum.
MLX_API array prod(const array& a, bool keepdims, StreamOrDevice s = {});
inline array prod(const array& a, StreamOrDevice s = {}) {
  return prod(a, false, s);
}
MLX_API array prod(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
prod(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The largest element; NaN if there is one. Raises std::invalid_argument for
/// an empty axis.
MLX_API array max(const array& a, bool keepdims, StreamOrDevice s = {});
inline array max(const array& a, StreamOrDevice s = {}) {
  return max(a, false, s);
}
MLX_API array
max(const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
max(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The smallest element; as max.
MLX_API array min(const array& a, bool keepdims, StreamOrDevice s = {});
inline array min(const array& a, StreamOrDevice s = {}) {
  return min(a, false, s);
}
MLX_API array
min(const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
min(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The arithmetic mean; integers give float32. NaN for no elements.
MLX_API array mean(const array& a, bool keepdims, StreamOrDevice s = {});
inline array mean(const array& a, StreamOrDevice s = {}) {
  return mean(a, false, s);
}
MLX_API array mean(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
mean(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// log(sum(exp(a))) without overflow; integers give float32.
MLX_API array logsumexp(const array& a, bool keepdims, StreamOrDevice s = {});
inline array logsumexp(const array& a, StreamOrDevice s = {}) {
  return logsumexp(a, false, s);
}
MLX_API array logsumexp(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array logsumexp(
    const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The number of elements that are not zero, int32.
MLX_API array
count_nonzero(const array& a, bool keepdims = false, StreamOrDevice s = {});
MLX_API array count_nonzero(
    const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});
MLX_API array count_nonzero(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});

/// The variance with divisor n - ddof; float32 for complex64.
MLX_API array
var(const array& a, bool keepdims, int ddof = 0, StreamOrDevice s = {});
inline array var(const array& a, StreamOrDevice s = {}) {
  return var(a, false, 0, s);
}
MLX_API array
var(const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    int ddof = 0,
    StreamOrDevice s = {});
MLX_API array
var(const array& a,
    int axis,
    bool keepdims = false,
    int ddof = 0,
    StreamOrDevice s = {});

/// The square root of var.
MLX_API array
std(const array& a, bool keepdims, int ddof = 0, StreamOrDevice s = {});
inline array std(const array& a, StreamOrDevice s = {}) {
  return std(a, false, 0, s);
}
MLX_API array
std(const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    int ddof = 0,
    StreamOrDevice s = {});
MLX_API array
std(const array& a,
    int axis,
    bool keepdims = false,
    int ddof = 0,
    StreamOrDevice s = {});

/// The median, the mean of the two middle elements for even counts.
MLX_API array median(const array& a, bool keepdims, StreamOrDevice s = {});
inline array median(const array& a, StreamOrDevice s = {}) {
  return median(a, false, s);
}
MLX_API array median(
    const array& a,
    const std::vector<int>& axes,
    bool keepdims = false,
    StreamOrDevice s = {});
MLX_API array
median(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The index (uint32) of the first smallest element; a NaN counts as smallest.
MLX_API array argmin(const array& a, bool keepdims, StreamOrDevice s = {});
inline array argmin(const array& a, StreamOrDevice s = {}) {
  return argmin(a, false, s);
}
MLX_API array
argmin(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

/// The index (uint32) of the first largest element; a NaN counts as largest.
MLX_API array argmax(const array& a, bool keepdims, StreamOrDevice s = {});
inline array argmax(const array& a, StreamOrDevice s = {}) {
  return argmax(a, false, s);
}
MLX_API array
argmax(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});

}  // namespace mlx::core
