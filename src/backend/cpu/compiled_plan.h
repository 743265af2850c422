// What the executor of fused programs does for each block of elements: the
// block routines of the single operations, and where their operands lie. Made
// once for a program and the kinds of its inputs, in a few microseconds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/chain.h"
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/kernels/reduce.h"
#include "ops/compiled.h"

namespace mlx::core::cpu {

/// What an input has in a call: nothing that is needed, one element, one
/// element repeated over several, one for each row, one for each element.
enum class InputKind : uint8_t { none, one, repeated, row, element };

/// All that a plan depends on besides the program.
struct FusedKey {
  std::vector<InputKind> inputs;
  /// The outputs that the plan computes, as positions in program.outputs.
  std::vector<uint32_t> outputs;
  /// Row by row, which reductions need; else in any order of the elements.
  bool by_rows = false;
  /// Several whole rows at once: values of rows are spread over elements.
  bool grouped = false;
  /// Rows are short enough to keep values between two passes over them.
  bool keep = false;

  bool operator==(const FusedKey&) const = default;
};

/// Where a value lies. All rooms together make one table of pointers, in this
/// order.
enum class Room : uint8_t {
  input,      ///< an input's elements
  output,     ///< an output's elements
  one,        ///< values that there is one of, made once a call
  row,        ///< values of rows
  block,      ///< a buffer for a block of elements, used for several values
  kept,       ///< a buffer for a row of elements, for later passes
  temporary,  ///< values of one group of elements within a chain
};
inline constexpr int kNumRooms = 7;

struct Place {
  Room room = Room::input;
  uint32_t index = 0;
  bool operator==(const Place&) const = default;
};

struct Instruction {
  enum class Kind : uint8_t {
    block,   ///< out = function(in)
    fill,    ///< one value repeated over the block
    expand,  ///< the value of each row repeated over its elements
    reduce,  ///< in[0] joins the partial results of a reduction; if there are
             ///< two, it is their product that does
    chain,   ///< several steps on registers
  };
  Kind kind = Kind::block;
  uint8_t arity = 1;
  /// Bytes of a result.
  uint8_t width = 4;
  uint32_t which = 0;  ///< of the pass's reductions or the part's chains
  std::array<uint32_t, 3> in{};  ///< positions in the table of pointers
  uint32_t out = 0;
  BlockFn function = nullptr;
  /// On values of rows whose places have room for a whole kRowPad of them: what
  /// lies behind may be computed too, which is quicker than a part of a vector.
  bool is_padded = false;
};

/// Places for values of rows hold a multiple of so many.
inline constexpr size_t kRowPad = 8;
inline size_t padded_rows(size_t count) {
  return (count + kRowPad - 1) / kRowPad * kRowPad;
}

/// A stage of a chain and where its operand or result lies.
struct FusedStage {
  enum class Role : uint8_t { none, fixed, read, write };
  ChainFn run;
  uint32_t at;  ///< position in the table of pointers
  Role role;
  uint8_t width;      ///< bytes of an element that is read or written
  ChainFn streaming;  ///< the same past the caches, or null
  /// Reads an input for the last time, so that what follows can be asked for.
  bool is_last_read;
};
struct FusedChain {
  std::vector<FusedStage> stages;
  uint32_t first = 0;  ///< number of the first stage among those of the part
};

struct FusedReduction {
  ReduceFn combine;  ///< elements to accumulators
  ReduceFn merge;    ///< accumulators to accumulators
  BlockFn convert;   ///< accumulators to results, null where equal
  uint8_t width;     ///< bytes of an accumulator
  uint32_t out;      ///< position in the table of pointers
};

/// One pass over a row, or over everything where nothing is reduced.
struct FusedPass {
  std::vector<Instruction> rows;      ///< once a row, before the elements
  std::vector<Instruction> elements;  ///< for each block
  std::vector<FusedReduction> reductions;
  /// Inputs and outputs read or written block by block.
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
};

struct FusedPart {
  FusedKey key;
  std::vector<Instruction> ones;  ///< once a call
  std::vector<FusedPass> passes;
  std::vector<FusedChain> chains;
  uint32_t num_stages = 0;
  /// First positions of the rooms in the table of pointers, and its length.
  std::array<uint32_t, kNumRooms + 1> rooms{};
  /// Bytes of an element of each buffer.
  std::vector<uint8_t> block_widths;
  std::vector<uint8_t> kept_widths;
  /// For each of key.outputs: whether it has a value for each element, each
  /// row or only one.
  std::vector<Extent> output_extents;
  /// Whether an output is stored by a chain and nobody reads it.
  std::vector<bool> is_streamable;
  /// Whether an output may take over an input's memory:
  /// may_donate[output * inputs + input].
  std::vector<bool> may_donate;

  /// Whether chains were cut because one would have read too many inputs.
  bool has_many_streams = false;
  /// The inputs that have values of rows.
  std::vector<uint32_t> row_inputs;

  uint32_t count(Room room) const {
    int i = static_cast<int>(room);
    return rooms[i + 1] - rooms[i];
  }
  uint32_t first(Room room) const { return rooms[static_cast<int>(room)]; }
  /// Whether an output is read again in a pass after the one that made it.
  bool is_read_again(uint32_t output) const;
};

/// The plan of a program, one part for each shape that is iterated over.
struct CpuFusedPlan final : FusedPlan {
  std::vector<FusedPart> parts;
};

FusedPart make_fused_part(const FusedProgram& program, FusedKey key);

}  // namespace mlx::core::cpu
