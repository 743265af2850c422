// How a plan is made; for the two files that do it.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/compiled_draft.h"
#include "ops/compiled.h"

namespace mlx::core::cpu {

/// Makes one plan. Steps are sorted into passes and kinds first
/// (compiled_plan.cpp), then turned into instructions (compiled_emit.cpp).
class FusedPlanner {
 public:
  FusedPlanner(const FusedProgram& program, FusedKey key)
      : program_(program), key_(std::move(key)) {}

  FusedPart plan();

 private:
  static constexpr Place kNowhere{Room::input, UINT32_MAX};

  int num_values() const {
    return program_.num_inputs() + static_cast<int>(program_.steps.size());
  }
  int output_of(int value) const { return output_of_[value]; }
  bool is_repeated(int value) const {
    return program_.is_input(value) &&
           key_.inputs[value] == InputKind::repeated;
  }
  bool is_reduce(int value) const {
    return !program_.is_input(value) &&
           program_.step_of(value).kind == FusedStep::Kind::reduce;
  }

  /// What a step reads. For a sum of products that nobody else wants, which
  /// then need not be stored, that is what they are products of.
  std::span<const int> reads_of(int value) const;

  void find_needed();
  void classify();
  void spread_over_passes();
  void emit_pass(size_t pass);

  Place new_place(Extent extent, size_t width);
  Place result_place(int value);
  Place& place(int value) { return places_[value]; }
  std::vector<Draft>& list(Extent extent) {
    return extent == Extent::one   ? ones_
           : extent == Extent::row ? passes_[pass_].rows
                                   : passes_[pass_].elements;
  }

  void emit_elements();
  size_t chain_length(const std::vector<int>& steps, size_t begin);
  std::vector<bool> read_outside(const std::vector<bool>& inside);
  void emit_chain(const std::vector<int>& steps);
  void emit(int value);
  void emit_elementwise(const FusedStep& step, Extent extent, Place out);
  void emit_reduce(int value);
  void emit_block(
      Extent extent,
      BlockFn function,
      const std::array<Place, 3>& in,
      int arity,
      Place out,
      size_t width);
  Place operand(int value, Extent extent, bool can_be_scalar, bool* scalar);
  Place spread(int value);
  Place widened(int value, Extent extent, Place from);

  void find_donations();
  uint32_t position(Place p) const { return part_.first(p.room) + p.index; }
  void touch(FusedPass& pass, Place p);
  std::vector<Instruction> numbered(const std::vector<Draft>& drafts);
  void finish();

  const FusedProgram& program_;
  FusedKey key_;
  FusedPart part_;
  std::vector<bool> needed_;
  // Of each value, how many steps and outputs want it.
  std::vector<int> uses_;
  std::vector<int> output_of_;  // -1 for values that stay inside
  std::vector<Extent> extents_;
  std::vector<int> levels_;
  // For each pass, the steps of elements to make; for each value, whether it
  // is kept between passes.
  std::vector<std::vector<bool>> made_;
  std::vector<bool> kept_;
  std::vector<Place> places_;
  std::vector<Place> wide_;
  std::vector<Place> spread_;
  std::vector<Draft> ones_;
  std::vector<DraftPass> passes_;
  size_t pass_ = 0;
  std::vector<size_t> last_pass_;  // that reads an input
  std::array<uint32_t, kNumRooms> counts_{};
  std::vector<uint8_t> block_widths_;
};

}  // namespace mlx::core::cpu
