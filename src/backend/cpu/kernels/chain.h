// Chains of float32 operations that keep their values in registers. A group of
// elements, four vectors, goes through all stages of a chain before the next
// one: each stage ends by jumping to the following one and hands the vectors
// on in registers. A stage is compiled by itself, so that its result is rounded
// as that of the single operation, and costs an indirect jump and its own
// instructions: about 0.03 ns an element for an addition (Zen 3) against 0.09
// for a pass over a block.
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"
#include "ops/elementwise_op.h"

namespace mlx::core::cpu {

/// The code of a stage; its real type is that of the instruction set.
using ChainFn = void (*)();

struct ChainStage {
  ChainFn run;
  /// The operand or result of element 0 of the block, if there is one.
  const void* at;
  /// Bytes from one element to the next; 0 for a place of one group.
  size_t stride;
  /// Bytes from an operand that is loaded to one that memory should send.
  size_t ahead;
};

/// Elements of a group at the widest vectors.
inline constexpr size_t kMaxChainGroup = 64;

enum class ChainMove : uint8_t {
  load_scalar,  ///< one float32 for all
  load_float32,
  load_float16,
  load_bfloat16,
  load_bool,
  store_float32,
  store_float16,
  store_bfloat16,
  store_bool,
  stream_float32,  ///< past the caches, to places aligned to 64 bytes
  stream_float16,
  stream_bfloat16,
  round_float16,  ///< to the nearest number of that type
  round_bfloat16,
  from_bool,  ///< 0 or 1
  to_bool,    ///< whether it is not 0
  end,        ///< the last stage
};

}  // namespace mlx::core::cpu

// Elements of a group.
MLX_ISA_KERNEL(size_t, chain_group, ())
MLX_ISA_KERNEL(ChainFn, chain_move, (ChainMove move))
// Operations on float32 (bool: on truth values, for logical_and, _or and _not
// only); null where there is no stage. The other operand of a binary one is in
// memory as float32, a truth value as it is in registers; `scalar` says that it
// is one element for all, `swapped` that it is the first operand.
MLX_ISA_KERNEL(ChainFn, chain_unary, (ElementwiseOp op, bool of_bool))
MLX_ISA_KERNEL(
    ChainFn,
    chain_binary,
    (ElementwiseOp op, bool of_bool, bool scalar, bool swapped))
// The same together with the stage before it, a load of float32, or the one
// behind it, a store; null where there is no such stage. The operand of the
// earlier of the two is in this stage, that of the later one in the next, whose
// own code does not run.
MLX_ISA_KERNEL(
    ChainFn,
    chain_joined,
    (ElementwiseOp op, bool scalar, bool swapped, ChainMove move))
// The second and third operand of a choice are those of this stage and the
// next, whose own code does not run.
MLX_ISA_KERNEL(ChainFn, chain_select, (bool scalar_b, bool scalar_c))
// All stages of a gelu in one, in the place of the first; those behind it hold
// their operands: load, multiply or divide by a number, erf, add a number,
// multiply by elements, multiply or divide by a number, store, end.
MLX_ISA_KERNEL(
    ChainFn, chain_gelu, (bool divides, bool divides_last, bool streaming))
// n elements, a multiple of chain_group(). The last of `count` stages is
// ChainMove::end, whose place is set here.
MLX_ISA_KERNEL(void, run_chain, (ChainStage * stages, size_t count, size_t n))
