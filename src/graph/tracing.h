// Whether the calling thread is inside a function transform. While it is,
// tracers keep their graph.
#pragma once

#include <cstdint>

#include "mlx/api.h"

namespace mlx::core::detail {

enum class Tracing {
  /// grad, vjp, jvp: values can be computed, the graph stays.
  grad,
  /// vmap and compile: values do not exist yet.
  placeholders,
  /// shapeless compile: shapes are not final either.
  shapeless,
  /// An operation of a shapeless compile is built for certain shapes.
  certain_shapes
};

/// Marks the calling thread as tracing for its lifetime.
class MLX_API InTracing {
 public:
  /// `resumed` is the number of a trace whose nodes are to count as tracers
  /// again, unless the thread is tracing already.
  explicit InTracing(Tracing kind, uint32_t resumed = 0);
  ~InTracing();
  InTracing(const InTracing&) = delete;
  InTracing& operator=(const InTracing&) = delete;
};

MLX_API bool in_tracing();
/// The number of the thread's outermost transform, another one each time and
/// in each thread; 0 outside.
MLX_API uint32_t current_trace();
MLX_API bool in_grad_tracing();
/// Also in transforms inside of a shapeless compile.
MLX_API bool in_shapeless_tracing();

}  // namespace mlx::core::detail
