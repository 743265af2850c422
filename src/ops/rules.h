// What batch rules and derivatives of operations with several inputs share.
#pragma once

#include <utility>
#include <vector>

#include "mlx/array.h"
#include "mlx/stream.h"

// Declarations of all four rules, for classes of operations.
#define MLX_ALL_RULES()                                               \
  std::vector<array> jvp(                                             \
      const std::vector<array>& primals,                              \
      const std::vector<array>& tangents,                             \
      const std::vector<int>& argnums) override;                      \
  std::vector<array> vjp(                                             \
      const std::vector<array>& primals,                              \
      const std::vector<array>& cotangents,                           \
      const std::vector<int>& argnums,                                \
      const std::vector<array>& outputs) override;                    \
  std::pair<std::vector<array>, std::vector<int>> vmap(               \
      const std::vector<array>& inputs, const std::vector<int>& axes) \
      override;                                                       \
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;

namespace mlx::core {

/// Outputs and their batch axes, as vmap rules return them.
using Batched = std::pair<std::vector<array>, std::vector<int>>;

/// The length of the batch axis, 1 when no input has one.
ShapeElem batch_size(
    const std::vector<array>& inputs, const std::vector<int>& axes);

/// `shape` with a batch axis in front.
Shape with_batch(Shape shape, ShapeElem batch);

/// `axes` as they are named with a batch axis in front.
std::vector<int> shifted(std::vector<int> axes);

/// `x` with the batch in front, repeated where it had none (axis < 0).
array with_batch(const array& x, int axis, ShapeElem batch, Stream s);

/// All inputs with the batch in front, repeated where they had none.
std::vector<array> all_batched(
    const std::vector<array>& inputs, const std::vector<int>& axes, Stream s);

/// `x` broadcast to the shape of `like`.
array broadcast_like(const array& x, const array& like, Stream s);

/// The tangents in the places of `argnums`, zeros elsewhere.
std::vector<array> filled_tangents(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums,
    Stream s);

}  // namespace mlx::core
