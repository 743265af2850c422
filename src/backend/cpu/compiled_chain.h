// Which steps of a fused program run as chains on registers, and the stages
// that make them do so.
#pragma once

#include <vector>

#include "backend/cpu/compiled_draft.h"
#include "ops/compiled.h"

namespace mlx::core::cpu {

/// Whether the step can be part of a chain: an operation on float32 or 16-bit
/// floats, which travel as float32 that is rounded after each step, or on the
/// truth values that comparisons give.
bool is_chainable(const FusedProgram& program, int value);

/// Puts together the stages of one chain. Values that other stages want later
/// go to temporary places of one group of elements each.
class ChainBuilder {
 public:
  explicit ChainBuilder(const FusedProgram& program);

  /// A value from outside: elements in memory, or one float32 for all.
  void add_source(int value, Place place, bool is_scalar);
  /// The chain's step `value` is wanted outside too.
  void add_sink(int value, Place place);
  /// The stages of `steps`, in order.
  std::vector<DraftStage> build(const std::vector<int>& steps);

  /// Temporary places used.
  uint32_t num_temporaries() const {
    return static_cast<uint32_t>(is_taken_.size());
  }

 private:
  static constexpr int kNone = -1;

  struct Value {
    Place source;
    bool has_source = false;
    bool is_scalar = false;
    Place sink;
    bool has_sink = false;
    int uses = 0;
    int temporary = kNone;
  };

  bool is_in_memory(int value) const;
  void ensure_in_memory(int value);
  void keep_current();
  void store_temporary(int value);
  void load(int value);
  /// The operand is used once more: keeps it if that was not the last time.
  void use(int value);
  void release(int value);

  void emit_step(int value);
  void emit_unary(const FusedStep& step);
  void emit_binary(const FusedStep& step);
  void emit_select(const FusedStep& step);
  void emit_cast(const FusedStep& step);
  void emit_store(int value);
  void join_stages();
  bool join_gelu();
  void push(ChainFn run);
  void push_operand(ChainFn run, int value);

  const FusedProgram& program_;
  std::vector<Value> values_;
  std::vector<DraftStage> stages_;
  std::vector<bool> is_taken_;
  int current_ = kNone;  // the value in the registers
};

}  // namespace mlx::core::cpu
