// The part of a generated text that computes: formulas and steps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/cuda/fused_text.h"

namespace mlx::core::cuda {

/// Text from pieces.
template <typename... Parts>
void put(std::string& text, const Parts&... parts) {
  auto add = [&](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(parts), ...);
}

/// The device's name of an element type, and of what it is computed in.
const char* fused_type(Dtype t);
const char* fused_compute_type(Dtype t);
inline bool is_half(Dtype t) {
  return t.val() == Dtype::Val::float16 || t.val() == Dtype::Val::bfloat16;
}

inline bool fused_is_number(FusedRead read) {
  return read == FusedRead::number || read == FusedRead::value ||
         read == FusedRead::literal;
}

/// A function for each formula that the program uses.
std::string fused_formulas(const FusedProgram& program);

/// Value number v is the variable v<v>, a half's own bits h<v>; a divisor's
/// reciprocal is r<v>.
std::string fused_stored(const FusedProgram& program, int value);
/// Declares those of an input from the text of its element.
void put_input(
    std::string& text,
    const FusedProgram& program,
    int input,
    const std::string& element);
/// The same of an input that is a number.
void put_number(
    std::string& text,
    const FusedProgram& program,
    const FusedForm& form,
    int input);
/// Whether the step divides elements of a row by a number that is one for the
/// row: then by a RowDivisor, which the text of fused_row_divisor knows.
bool fused_divides_by_row(
    const FusedProgram& program,
    const FusedForm& form,
    const std::vector<bool>& of_row,
    int value);
const char* fused_row_divisor();

/// The first statements of a kernel: it waits for earlier work and lets later
/// kernels take their places (device/overlap.cuh). Plain loads stay behind.
const char* fused_beginning();

/// Instructions for a step, about.
int fused_step_weight(
    const FusedProgram& program, const FusedForm& form, const FusedStep& step);

/// The text that computes a step from its operands, whose names are given;
/// a half is rounded by who stores it.
std::string fused_made(
    const FusedProgram& program,
    const FusedForm& form,
    int value,
    const std::function<std::string(int)>& name);

/// Declares a value from the text that computes it.
void put_made(
    std::string& text,
    const FusedProgram& program,
    int value,
    const std::string& made);
/// Declares the result of an elementwise step or cast.
void put_step(
    std::string& text,
    const FusedProgram& program,
    const FusedForm& form,
    int value);

}  // namespace mlx::core::cuda
