// One way to write messages: `[op] what is wrong: what was given. What is
// expected.`
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "mlx/error.h"
#include "mlx/utils.h"

namespace mlx::core {

template <typename... Parts>
std::string message(std::string_view op, const Parts&... parts) {
  std::ostringstream os;
  os << "[" << op << "] ";
  (os << ... << parts);
  return os.str();
}

/// Raises std::invalid_argument with `[op] parts...`.
template <typename... Parts>
[[noreturn]] void invalid(std::string_view op, const Parts&... parts) {
  throw std::invalid_argument(message(op, parts...));
}

/// `axis` counted from 0, or AxisError naming `op`.
inline int checked_axis(std::string_view op, int axis, int ndim) {
  if (axis < -ndim || axis >= ndim) {
    throw AxisError(message(
        op,
        "axis out of range: ",
        axis,
        " for an array of ",
        ndim,
        " dimensions. Expected -ndim <= axis < ndim."));
  }
  return axis < 0 ? axis + ndim : axis;
}

/// The same with the class documented for reductions.
inline int checked_reduction_axis(std::string_view op, int axis, int ndim) {
  if (axis < -ndim || axis >= ndim) {
    throw AxisRangeError(message(
        op,
        "axis out of range: ",
        axis,
        " for an array of ",
        ndim,
        " dimensions. Expected -ndim <= axis < "
        "ndim."));
  }
  return axis < 0 ? axis + ndim : axis;
}

}  // namespace mlx::core
