// Whether the calling thread is inside a function transform. While it is,
// tracers keep their graph.
#pragma once

#include "mlx/api.h"

namespace mlx::core::detail {

enum class Tracing {
  /// grad, vjp, jvp: values can be computed, the graph stays.
  grad,
  /// vmap and compile: values do not exist yet.
  placeholders,
  /// shapeless compile: shapes are not final either.
  shapeless
};

/// Marks the calling thread as tracing for its lifetime.
class MLX_API InTracing {
 public:
  explicit InTracing(Tracing kind);
  ~InTracing();
  InTracing(const InTracing&) = delete;
  InTracing& operator=(const InTracing&) = delete;
};

MLX_API bool in_tracing();
MLX_API bool in_grad_tracing();
MLX_API bool in_shapeless_tracing();

}  // namespace mlx::core::detail
