// Runs fused parts: one generated kernel for each.
#pragma once

#include "backend/cuda/encoder.h"
#include "backend/cuda/fused_text.h"

namespace mlx::core::cuda {

void compiled(
    const Compiled& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e);

/// The same for programs with reductions, along the last axis of the iteration
/// shape `shape`, which has no empty axis.
void compiled_rows(
    const Compiled& op,
    const std::vector<array>& inputs,
    const Shape& shape,
    std::vector<array>& outputs,
    Encoder& e);

/// The same step by step, with the kernels of single operations: for what has
/// no elements, or more operands than a launch takes.
void compiled_by_steps(
    const Compiled& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e);

/// Whether a softmax or norm of an array of this shape is faster by itself than
/// in a fused part.
bool better_alone(const Primitive& op, const Shape& shape);

}  // namespace mlx::core::cuda
