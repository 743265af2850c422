// Instructions on values that have no buffers yet, and the step that gives
// them some: blocks whose values are dead are used again, so that all of them
// stay in the first cache.
#pragma once

#include <vector>

#include "backend/cpu/compiled_plan.h"

namespace mlx::core::cpu {

struct DraftStage {
  using Role = FusedStage::Role;
  ChainFn run = nullptr;
  Place place;
  Role role = Role::none;
  uint8_t width = 0;
  ChainFn streaming = nullptr;
  /// What it does, as far as stages can be joined.
  ChainMove move = ChainMove::end;
  bool is_binary = false;
  ElementwiseOp op{};
  bool is_scalar = false;
  bool is_swapped = false;
};

struct Draft {
  Instruction instruction;
  std::vector<DraftStage> stages;  ///< of a chain, which has no `in` and `out`
  std::array<Place, 3> in{};
  Place out;
};

struct DraftPass {
  std::vector<Draft> rows;
  std::vector<Draft> elements;
  std::vector<FusedReduction> reductions;
  std::vector<Place> reduced;  ///< of each reduction, its results
};

/// Places in Room::block are numbered anew for each value; `widths` are their
/// bytes an element. Renumbers them, pass by pass, to buffers of which a value
/// keeps one only up to its last use, and notes the buffers' widths.
void assign_blocks(
    std::vector<DraftPass>& passes,
    const std::vector<uint8_t>& widths,
    std::vector<uint8_t>& buffers);

}  // namespace mlx::core::cpu
