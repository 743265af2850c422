// Outputs of a fused program that iterate over different shapes are computed
// apart, each with the steps that it needs.
#pragma once

#include <vector>

#include "mlx/array.h"
#include "ops/compiled.h"

namespace mlx::core::cpu {

/// Outputs (positions in program.outputs) that are computed together, and the
/// shape that they iterate over.
struct FusedShare {
  std::vector<uint32_t> outputs;
  Shape shape;
  bool has_reductions = false;
  /// Whether all inputs and outputs of the program belong to it.
  bool is_whole = true;
};

std::vector<FusedShare> split_outputs(
    const FusedProgram& program,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs);

}  // namespace mlx::core::cpu
