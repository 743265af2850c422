// The part of a generated text that computes two neighbouring elements at once,
// for programs with halves: a register holds two of them, and sums and products
// of both take one instruction.
#pragma once

#include <string>
#include <vector>

#include "backend/cuda/fused_text.h"

namespace mlx::core::cuda {

/// Whether the program gains by it and the form allows it.
bool fused_takes_pairs(const FusedProgram& program, const FusedForm& form);

/// What the lines of a pair call.
const char* fused_pair_functions();

/// Lines for the elements j and j + 1 of pack p. Value v is v<v>_0 and v<v>_1,
/// or v<v> if it is one for both; halves are in the word w<v> too.
class PairText {
 public:
  PairText(const FusedProgram& program, const FusedForm& form)
      : program_(program), form_(form) {}

  /// Declares an input; `reads_words` says whether it is held in words.
  void put_input(std::string& text, int input) const;
  /// The word of a number, which has been declared.
  void put_number_word(std::string& text, int input) const;
  void put_step(std::string& text, int value) const;
  /// The result of an output goes into its pack.
  void put_output(std::string& text, int output) const;

 private:
  bool is_one(int value) const;
  std::string lane(int value, int which) const;
  void put_floats(std::string& text, int value) const;

  const FusedProgram& program_;
  const FusedForm& form_;
};

}  // namespace mlx::core::cuda
