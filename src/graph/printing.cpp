// The text form of an array: evaluates, then writes at most six entries an
// axis.
#include <sstream>

#include "mlx/dtype_utils.h"
#include "mlx/utils.h"

namespace mlx::core {

namespace {

constexpr int kEdgeItems = 3;

template <typename T>
void print_element(std::ostream& os, const char* at) {
  get_global_formatter().print(os, *reinterpret_cast<const T*>(at));
}

template <typename T>
void print_axis(std::ostream& os, const array& a, size_t axis, int64_t offset) {
  const char* base = a.data<char>();
  if (axis == a.ndim()) {
    print_element<T>(os, base + offset * static_cast<int64_t>(sizeof(T)));
    return;
  }
  int n = a.shape(static_cast<int>(axis));
  bool innermost = axis + 1 == a.ndim();
  std::string separator = innermost ? ", " : ",\n" + std::string(7 + axis, ' ');
  os << "[";
  for (int i = 0; i < n; ++i) {
    if (i > 0) {
      os << separator;
    }
    if (n > 2 * kEdgeItems && i == kEdgeItems) {
      os << "..." << separator;
      i = n - kEdgeItems;
    }
    print_axis<T>(
        os, a, axis + 1, offset + i * a.strides(static_cast<int>(axis)));
  }
  os << "]";
}

}  // namespace

std::ostream& operator<<(std::ostream& os, array a) {
  a.eval();
  os << "array(";
  dispatch_all_types(a.dtype(), [&](auto tag) {
    using T = MLX_GET_TYPE(tag);
    if (a.size() == 0) {
      os << "[]";
    } else {
      print_axis<T>(os, a, 0, 0);
    }
  });
  return os << ", dtype=" << a.dtype() << ")";
}

}  // namespace mlx::core
