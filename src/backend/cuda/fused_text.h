// The text of a kernel for a fused program, made at run time for the compiler
// in jit.h. No header of CUDA here, so that tests need none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/compiled.h"

namespace mlx::core::cuda {

/// How a kernel gets N elements of an input that are neighbours in the
/// iteration shape.
enum class FusedRead : uint8_t {
  number,   // one for the whole array
  value,    // the same, in place of its address
  literal,  // the same, in the text
  pack,     // one access
  splat,    // one element for all of them
  pieces    // each by itself
};

/// What is known of a number that others are divided by.
enum class FusedDivisor : uint8_t {
  any,
  /// Products with its reciprocal are the quotients.
  exact,
  /// They are after one correction.
  close
};

/// What the text of a kernel depends on beside the program.
struct FusedForm {
  enum class Kind : uint8_t {
    elements,  // no reductions
    held,      // rows that registers hold
    walked     // rows that are read for every reduction and once more
  };
  struct Input {
    FusedRead read = FusedRead::pack;
    /// Inputs that lie alike share an offset; 0 is the order of the elements.
    uint16_t layout = 0;
    uint32_t literal = 0;  // the bits of a float
    FusedDivisor divisor = FusedDivisor::any;
    bool operator==(const Input&) const = default;
  };
  /// An output of fewer elements than the iteration shape has a layout of its
  /// own, and is written where the offset in layout `guard` is 0.
  struct Output {
    uint16_t layout = 0;
    uint16_t guard = 0;
    bool is_row = false;  // one number for each row
    bool operator==(const Output&) const = default;
  };

  Kind kind = Kind::elements;
  bool wide = false;      // offsets need 64 bits
  bool has_tail = false;  // elements that fill no pack
  uint8_t pack = 1;       // elements of one access
  uint8_t packs = 1;      // of a thread
  uint8_t axes = 0;       // that layouts walk, of rows the leading ones
  uint16_t layouts = 0;   // beside layout 0
  uint16_t many = 0;      // arguments that one launch takes, 0 for one alone
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  bool operator==(const FusedForm&) const = default;
};

/// Threads of a block of a kernel without reductions.
inline constexpr int kFusedThreads = 256;
/// The most threads of a block of one with reductions.
inline constexpr int kFusedRowThreads = 512;

/// What is known of `value`, a number of type `t` that the host has.
FusedDivisor fused_divisor(Dtype t, double value);

/// Instructions for an element, about.
int fused_weight(const FusedProgram& program, const FusedForm& form);

/// The program in CUDA C++. Its kernel `fused` takes one argument, words of 8
/// bytes: how many elements (or rows, and their length); the inputs, addresses
/// or values, behind which stands a float's reciprocal if it is a divisor; the
/// outputs' addresses; the divisor of each axis (two words); of each layout the
/// strides. A kernel for many arguments takes their number, the numbers of
/// their first blocks (4 bytes each) and then them.
std::string fused_text(const FusedProgram& program, const FusedForm& form);

}  // namespace mlx::core::cuda
