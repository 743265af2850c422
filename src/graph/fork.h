// Forks: a child has none of its parent's other threads, so what they were
// about to do never happens there.
#pragma once

#include "mlx/api.h"

namespace mlx::core::detail {

/// 0, and one more in a forked child than in its parent.
MLX_API int fork_generation();

/// Raises std::runtime_error: work of the parent is waited for in the child.
[[noreturn]] void lost_in_fork();

}  // namespace mlx::core::detail
