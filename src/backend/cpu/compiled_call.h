// One run of a part of a plan: the arrays' memory, and each thread's pointers.
#pragma once

#include <vector>

#include "backend/cpu/block_source.h"
#include "backend/cpu/compiled_plan.h"
#include "backend/cpu/kernels/chain.h"

namespace mlx::core::cpu {

/// Where inputs and outputs lie; the same for all threads.
struct FusedCall {
  const FusedPart& part;
  /// Of each input; how it lies in the elements, or in the rows for values of
  /// rows.
  std::vector<BlockView> inputs;
  struct Output {
    char* data = nullptr;
    uint8_t width = 0;
    /// Made in a buffer and stored past the caches.
    bool streaming = false;
    /// Stored past the caches by the chain that makes it.
    bool direct = false;
  };
  std::vector<Output> outputs;
  /// The table of pointers before it is cut into blocks, and what it points to
  /// for the values that there is one of.
  SmallVector<const void*, 64> table;
  SmallVector<uint64_t, 16> ones;

  explicit FusedCall(const FusedPart& p) : part(p) {}
  /// Fills the table and computes the values that there is one of. Call it
  /// once inputs and outputs are set.
  void begin();
};

/// The elements of a block that lets all buffers of a thread stay in L1; `size`
/// elements are to be cut into blocks, 0 for rows. Without buffers the block of
/// rows is kReducedBlock, so that sums have the bits of single reductions.
size_t fused_block_size(const FusedCall& call, size_t size = 0);

/// A block routine, or one value for n elements.
inline void run_instruction(
    const Instruction& instruction, const void** table, size_t n) {
  const void* in[] = {
      table[instruction.in[0]],
      table[instruction.in[1]],
      table[instruction.in[2]]};
  void* out = const_cast<void*>(table[instruction.out]);
  if (instruction.function) {
    instruction.function(in, out, n);
  } else {
    gather_block(in[0], 0, out, n, instruction.width);
  }
}

/// A thread's table of pointers and buffers.
class FusedFrame {
 public:
  /// Blocks of at most `block` elements; rows of `row` are kept. `extra` bytes
  /// are at extra().
  FusedFrame(
      const FusedCall& call, size_t block, size_t row = 0, size_t extra = 0);

  const void** table() { return table_; }
  char* extra() { return extra_; }

  /// Points to the elements [begin, begin + n) of what the pass touches.
  void seek(const FusedPass& pass, size_t begin, size_t n);
  /// Points to the elements from `column` on in the rows that are kept.
  void seek_kept(size_t column);
  /// One instruction on n elements; not a reduction.
  void run(const Instruction& instruction, size_t n) {
    if (instruction.kind == Instruction::Kind::chain) {
      run_stages(call_.part.chains[instruction.which], n);
    } else {
      run_instruction(instruction, table_, n);
    }
  }
  /// Stores what was made for streaming.
  void flush(const FusedPass& pass, size_t begin, size_t n);

 private:
  /// Gives out `memory`; returns how many bytes.
  size_t lay_out(char* memory, size_t block, size_t row, size_t extra);
  bool is_direct(uint32_t at) const;
  void run_stages(const FusedChain& chain, size_t n);
  void run_last_group(const FusedChain& chain, size_t begin, size_t n);

  const FusedCall& call_;
  const void** table_;
  char** gathered_;
  char** kept_;
  ChainStage* stages_;
  char* group_;  // elements of a last group that is not full
  char* extra_;
};

/// `size` elements in any order.
void run_flat(FusedCall& call, size_t size);
/// `rows` rows of n elements each.
void run_rows(FusedCall& call, size_t rows, size_t n);

}  // namespace mlx::core::cpu
