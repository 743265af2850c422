// One value is in the registers at a time. A stage overwrites it; a value that
// is wanted again goes to a temporary place before that, once.
#include "backend/cpu/compiled_chain.h"

#include <algorithm>

namespace mlx::core::cpu {

namespace {

bool is_half(Dtype t) {
  return t == float16 || t == bfloat16;
}
bool is_chain_float(Dtype t) {
  return t == float32 || is_half(t);
}

// Results that 16-bit floats hold exactly when the operands are such.
bool is_exact(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::abs:
    case ElementwiseOp::negative:
    case ElementwiseOp::sign:
    case ElementwiseOp::ceil:
    case ElementwiseOp::floor:
    case ElementwiseOp::round:
    case ElementwiseOp::trunc:
    case ElementwiseOp::maximum:
    case ElementwiseOp::minimum:
    case ElementwiseOp::select:
      return true;
    default:
      return false;
  }
}

ChainMove load_of(Dtype t) {
  return t == float32   ? ChainMove::load_float32
         : t == float16 ? ChainMove::load_float16
         : t == bool_   ? ChainMove::load_bool
                        : ChainMove::load_bfloat16;
}
ChainMove store_of(Dtype t) {
  return t == float32   ? ChainMove::store_float32
         : t == float16 ? ChainMove::store_float16
         : t == bool_   ? ChainMove::store_bool
                        : ChainMove::store_bfloat16;
}
ChainMove streaming_store_of(Dtype t) {
  return t == float32   ? ChainMove::stream_float32
         : t == float16 ? ChainMove::stream_float16
                        : ChainMove::stream_bfloat16;
}

}  // namespace

bool is_chainable(const FusedProgram& program, int value) {
  const FusedStep& step = program.step_of(value);
  auto fits = [](Dtype t) { return is_chain_float(t) || t == bool_; };
  for (int k = 0; k < step.arity; ++k) {
    if (!fits(program.dtype(step.operands[k]))) {
      return false;
    }
  }
  if (!fits(step.dtype) || step.kind == FusedStep::Kind::reduce) {
    return false;
  }
  if (step.kind == FusedStep::Kind::cast) {
    return true;
  }
  bool of_bool = program.dtype(step.operands[step.arity - 1]) == bool_;
  switch (step.arity) {
    case 1:
      return chain_unary(step.op, of_bool) != nullptr;
    case 2:
      return chain_binary(step.op, of_bool, false, false) != nullptr;
    default:
      return !of_bool;
  }
}

ChainBuilder::ChainBuilder(const FusedProgram& program)
    : program_(program), values_(program.num_inputs() + program.steps.size()) {}

void ChainBuilder::add_source(int value, Place place, bool is_scalar) {
  values_[value].source = place;
  values_[value].has_source = true;
  values_[value].is_scalar = is_scalar;
}

void ChainBuilder::add_sink(int value, Place place) {
  values_[value].sink = place;
  values_[value].has_sink = true;
}

std::vector<DraftStage> ChainBuilder::build(const std::vector<int>& steps) {
  for (int v : steps) {
    const FusedStep& step = program_.step_of(v);
    for (int k = 0; k < step.arity; ++k) {
      ++values_[step.operands[k]].uses;
    }
  }
  for (int v : steps) {
    emit_step(v);
  }
  push(chain_move(ChainMove::end));
  if (!join_gelu()) {
    join_stages();
  }
  return std::move(stages_);
}

void ChainBuilder::push(ChainFn run) {
  stages_.emplace_back().run = run;
}

// A stage with an operand that is in memory.
void ChainBuilder::push_operand(ChainFn run, int value) {
  const Value& v = values_[value];
  DraftStage& stage = stages_.emplace_back();
  stage.run = run;
  stage.role = DraftStage::Role::fixed;
  if (v.temporary != kNone) {
    stage.place = {Room::temporary, static_cast<uint32_t>(v.temporary)};
  } else {
    stage.place = v.source;
    if (!v.is_scalar) {
      stage.role = DraftStage::Role::read;
      stage.width = static_cast<uint8_t>(program_.dtype(value).size());
    }
  }
}

bool ChainBuilder::is_in_memory(int value) const {
  const Value& v = values_[value];
  return v.temporary != kNone ||
         (v.has_source && (v.is_scalar || program_.dtype(value) == float32));
}

void ChainBuilder::store_temporary(int value) {
  auto it = std::find(is_taken_.begin(), is_taken_.end(), false);
  if (it == is_taken_.end()) {
    it = is_taken_.insert(it, false);
  }
  *it = true;
  values_[value].temporary = static_cast<int>(it - is_taken_.begin());
  DraftStage& stage = stages_.emplace_back();
  stage.run = chain_move(ChainMove::store_float32);
  stage.move = ChainMove::store_float32;
  stage.role = DraftStage::Role::fixed;
  stage.place = {
      Room::temporary, static_cast<uint32_t>(values_[value].temporary)};
}

void ChainBuilder::keep_current() {
  if (current_ != kNone && values_[current_].uses > 0 &&
      !is_in_memory(current_)) {
    store_temporary(current_);
  }
}

void ChainBuilder::load(int value) {
  if (current_ == value) {
    return;
  }
  keep_current();
  const Value& v = values_[value];
  ChainMove move = v.temporary != kNone ? ChainMove::load_float32
                   : v.is_scalar        ? ChainMove::load_scalar
                                        : load_of(program_.dtype(value));
  push_operand(chain_move(move), value);
  stages_.back().move = move;
  current_ = value;
}

void ChainBuilder::ensure_in_memory(int value) {
  if (!is_in_memory(value)) {
    load(value);
    store_temporary(value);
  }
}

void ChainBuilder::use(int value) {
  --values_[value].uses;
}

void ChainBuilder::release(int value) {
  Value& v = values_[value];
  if (v.uses == 0 && v.temporary != kNone) {
    is_taken_[v.temporary] = false;
    v.temporary = kNone;
  }
}

void ChainBuilder::emit_unary(const FusedStep& step) {
  int x = step.operands[0];
  load(x);
  use(x);
  keep_current();
  push(chain_unary(step.op, program_.dtype(x) == bool_));
}

void ChainBuilder::emit_cast(const FusedStep& step) {
  int x = step.operands[0];
  load(x);
  use(x);
  keep_current();
  Dtype from = program_.dtype(x);
  if (from == step.dtype) {
    return;
  }
  if (step.dtype == bool_) {
    push(chain_move(ChainMove::to_bool));
  } else if (from == bool_) {
    push(chain_move(ChainMove::from_bool));
  } else if (is_half(step.dtype)) {
    push(chain_move(
        step.dtype == float16 ? ChainMove::round_float16
                              : ChainMove::round_bfloat16));
  }
}

void ChainBuilder::emit_binary(const FusedStep& step) {
  int x = step.operands[0];
  int y = step.operands[1];
  // One operand has to be in the registers, the other one in memory.
  if (x == y) {
    ensure_in_memory(x);
    load(x);
  } else if (current_ == x) {
    is_in_memory(y) ? void() : load(y);
  } else if (current_ == y) {
    is_in_memory(x) ? void() : load(x);
  } else if (!is_in_memory(y)) {
    ensure_in_memory(x);
    load(y);
  } else {
    bool load_second = values_[x].is_scalar && is_in_memory(x);
    load(load_second ? y : x);
  }
  bool swapped = current_ == y && x != y;
  int other = swapped ? x : y;
  use(x);
  use(y);
  keep_current();
  const Value& o = values_[other];
  bool scalar = o.is_scalar && o.temporary == kNone;
  bool of_bool = program_.dtype(other) == bool_;
  push_operand(chain_binary(step.op, of_bool, scalar, swapped), other);
  DraftStage& stage = stages_.back();
  stage.is_binary = !of_bool;
  stage.op = step.op;
  stage.is_scalar = scalar;
  stage.is_swapped = swapped;
}

void ChainBuilder::emit_select(const FusedStep& step) {
  auto [condition, b, c] = step.operands;
  ensure_in_memory(b);
  ensure_in_memory(c);
  load(condition);
  for (int v : step.operands) {
    use(v);
  }
  keep_current();
  auto is_scalar = [&](int v) {
    return values_[v].is_scalar && values_[v].temporary == kNone;
  };
  push_operand(chain_select(is_scalar(b), is_scalar(c)), b);
  push_operand(nullptr, c);
}

void ChainBuilder::emit_store(int value) {
  Dtype t = program_.dtype(value);
  DraftStage& stage = stages_.emplace_back();
  stage.move = store_of(t);
  stage.run = chain_move(stage.move);
  stage.streaming = t == bool_ ? nullptr : chain_move(streaming_store_of(t));
  stage.place = values_[value].sink;
  stage.role = DraftStage::Role::write;
  stage.width = static_cast<uint8_t>(t.size());
}

// x * (1 + erf(x / number)) / number and the like: one stage does all.
bool ChainBuilder::join_gelu() {
  if (stages_.size() != 8) {
    return false;
  }
  auto by_number = [&](size_t k, ElementwiseOp op) {
    const DraftStage& s = stages_[k];
    return s.is_binary && s.op == op && s.is_scalar &&
           !(s.is_swapped && op == ElementwiseOp::divide);
  };
  bool divides = by_number(1, ElementwiseOp::divide);
  bool divides_last = by_number(5, ElementwiseOp::divide);
  const DraftStage& factor = stages_[4];
  bool is_gelu = stages_[0].move == ChainMove::load_float32 &&
                 stages_[0].role == DraftStage::Role::read &&
                 (divides || by_number(1, ElementwiseOp::multiply)) &&
                 stages_[2].run == chain_unary(ElementwiseOp::erf, false) &&
                 by_number(3, ElementwiseOp::add) && factor.is_binary &&
                 factor.op == ElementwiseOp::multiply && !factor.is_scalar &&
                 (divides_last || by_number(5, ElementwiseOp::multiply)) &&
                 stages_[6].move == ChainMove::store_float32 &&
                 stages_[6].role == DraftStage::Role::write;
  if (!is_gelu) {
    return false;
  }
  for (size_t k = 1; k < 7; ++k) {
    stages_[k].run = nullptr;
  }
  stages_[0].run = chain_gelu(divides, divides_last, false);
  stages_[6].streaming = chain_gelu(divides, divides_last, true);
  return true;
}

// Cheap operations become one stage with the load before or the store behind
// them: the jump costs as much as they do.
void ChainBuilder::join_stages() {
  for (size_t k = 0; k + 1 < stages_.size(); ++k) {
    DraftStage& first = stages_[k];
    DraftStage& second = stages_[k + 1];
    bool loads = second.is_binary && first.move == ChainMove::load_float32;
    bool stores = first.is_binary && second.move == ChainMove::store_float32;
    if (!loads && !stores) {
      continue;
    }
    const DraftStage& binary = loads ? second : first;
    auto joined = [&](ChainMove move) {
      return chain_joined(binary.op, binary.is_scalar, binary.is_swapped, move);
    };
    ChainFn run = joined(loads ? first.move : second.move);
    if (run) {
      first.run = run;
      second.run = nullptr;
      second.streaming =
          second.streaming ? joined(ChainMove::stream_float32) : nullptr;
      ++k;
    }
  }
}

void ChainBuilder::emit_step(int value) {
  const FusedStep& step = program_.step_of(value);
  bool is_cast = step.kind == FusedStep::Kind::cast;
  if (is_cast) {
    emit_cast(step);
  } else if (step.arity == 1) {
    emit_unary(step);
  } else if (step.arity == 2) {
    emit_binary(step);
  } else {
    emit_select(step);
  }
  for (int k = 0; k < step.arity; ++k) {
    release(step.operands[k]);
  }
  if (!is_cast && is_half(step.dtype) && !is_exact(step.op)) {
    push(chain_move(
        step.dtype == float16 ? ChainMove::round_float16
                              : ChainMove::round_bfloat16));
  }
  current_ = value;
  if (values_[value].has_sink) {
    emit_store(value);
  }
}

}  // namespace mlx::core::cpu
