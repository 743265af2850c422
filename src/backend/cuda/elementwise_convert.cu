// The look-up of conversions over all source types.
#include "backend/cuda/dispatch.h"
#include "backend/cuda/elementwise_convert.h"

namespace mlx::core::cuda {

ElementwiseKernel<1> find_conversion(Dtype from, Dtype to) {
  return visit_type(from, [&](auto tag) {
    using From = typename decltype(tag)::type;
    // A bool is the number 0 or 1.
    using Number =
        std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
    return find_conversion_from<Number>(to);
  });
}

}  // namespace mlx::core::cuda
