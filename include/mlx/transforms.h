// Evaluation, and the function transforms vjp, jvp, grad and vmap.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"

namespace mlx::core {

/// Schedules the computation of `outputs` and returns. A later read waits.
MLX_API void async_eval(std::vector<array> outputs);
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void async_eval(Arrays&&... outputs) {
  async_eval(std::vector<array>{std::forward<Arrays>(outputs)...});
}

/// Computes `outputs` and all they need. Raises the first error of a
/// kernel; what was computed before it stays computed.
MLX_API void eval(std::vector<array> outputs);
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void eval(Arrays&&... outputs) {
  eval(std::vector<array>{std::forward<Arrays>(outputs)...});
}

}  // namespace mlx::core
