// From steps to instructions. Values that there are few of (one, or one a row)
// are made apart from those of elements, once; 16-bit floats are widened and
// rounded around the functions that have no routine for them; a value that a
// reduction and a later pass want is kept if it was dear.
#include "backend/cpu/compiled_plan.h"

#include <algorithm>

#include "backend/cpu/compiled_chain.h"
#include "backend/cpu/compiled_draft.h"
#include "types/error.h"

namespace mlx::core::cpu {

namespace {

// Buffers for a row of elements, at most.
constexpr size_t kMaxKept = 4;
// Steps of a chain, at most: where the compiler does not optimize, each stage
// takes room on the stack.
constexpr size_t kMaxChain = 200;

bool is_half(Dtype t) {
  return t == float16 || t == bfloat16;
}

ReduceLoops loops_of(ReduceType type, Dtype dtype) {
  switch (type) {
    case ReduceType::sum:
      return reduce_sum_loops(dtype);
    case ReduceType::prod:
      return reduce_prod_loops(dtype);
    case ReduceType::max:
      return reduce_max_loops(dtype);
    case ReduceType::min:
      return reduce_min_loops(dtype);
    default:
      return reduce_logic_loops(type == ReduceType::any, dtype);
  }
}

// Steps that cost no more than reading their result from a buffer.
bool is_cheap(const FusedStep& step) {
  if (step.kind == FusedStep::Kind::cast) {
    return true;
  }
  switch (step.op) {
    case ElementwiseOp::abs:
    case ElementwiseOp::negative:
    case ElementwiseOp::square:
    case ElementwiseOp::add:
    case ElementwiseOp::subtract:
    case ElementwiseOp::multiply:
    case ElementwiseOp::maximum:
    case ElementwiseOp::minimum:
    case ElementwiseOp::select:
      return true;
    default:
      return false;
  }
}

class Planner {
 public:
  Planner(const FusedProgram& program, FusedKey key)
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

void Planner::find_needed() {
  needed_.assign(num_values(), false);
  output_of_.assign(num_values(), -1);
  for (size_t o = 0; o < key_.outputs.size(); ++o) {
    int value = program_.outputs[key_.outputs[o]];
    needed_[value] = true;
    output_of_[value] = static_cast<int>(o);
  }
  for (int v = num_values() - 1; v >= program_.num_inputs(); --v) {
    const FusedStep& step = program_.step_of(v);
    for (int k = 0; needed_[v] && k < step.arity; ++k) {
      needed_[step.operands[k]] = true;
    }
  }
}

// How many values there really are of each, and how many reductions lie before
// them.
void Planner::classify() {
  for (int v = 0; v < num_values(); ++v) {
    Extent extent = Extent::one;
    int level = 0;
    if (program_.is_input(v)) {
      InputKind kind = key_.inputs[v];
      extent = kind == InputKind::one   ? Extent::one
               : kind == InputKind::row ? Extent::row
                                        : Extent::element;
    } else {
      const FusedStep& step = program_.step_of(v);
      for (int k = 0; k < step.arity; ++k) {
        extent = std::max(extent, extents_[step.operands[k]]);
        level = std::max(level, levels_[step.operands[k]]);
      }
      if (step.kind == FusedStep::Kind::reduce) {
        extent = Extent::row;
        ++level;
      }
    }
    extents_.push_back(extent);
    levels_.push_back(level);
  }
}

// A value of elements is made in the first pass that wants it. Passes after
// that read it from where it was kept, or make it again from what it was made
// of.
void Planner::spread_over_passes() {
  int last = 0;
  for (int v = 0; v < num_values(); ++v) {
    last = std::max(last, needed_[v] ? levels_[v] : 0);
  }
  passes_.resize(last + 1);
  made_.assign(last + 1, std::vector<bool>(num_values(), false));
  kept_.assign(num_values(), false);
  std::vector<bool> exists(num_values(), false);
  size_t num_kept = 0;
  for (int pass = 0; pass <= last; ++pass) {
    std::vector<bool> wanted(num_values(), false);
    for (int v = num_values() - 1; v >= program_.num_inputs(); --v) {
      const FusedStep& step = program_.step_of(v);
      if (!needed_[v]) {
        continue;
      }
      if (is_reduce(v)) {
        if (levels_[v] == pass + 1) {
          wanted[step.operands[0]] = true;
        }
        continue;
      }
      bool is_output = output_of(v) >= 0;
      if (extents_[v] != Extent::element ||
          !(wanted[v] || (is_output && levels_[v] == pass))) {
        continue;
      }
      if (exists[v]) {
        if (is_output || kept_[v]) {
          continue;
        }
        if (key_.keep && !is_cheap(step) && num_kept < kMaxKept) {
          kept_[v] = true;
          ++num_kept;
          continue;
        }
      }
      made_[pass][v] = true;
      for (int k = 0; k < step.arity; ++k) {
        wanted[step.operands[k]] = true;
      }
    }
    for (int v = 0; v < num_values(); ++v) {
      exists[v] = exists[v] || made_[pass][v];
    }
  }
}

Place Planner::new_place(Extent extent, size_t width) {
  if (extent == Extent::element) {
    block_widths_.push_back(static_cast<uint8_t>(width));
    return {Room::block, static_cast<uint32_t>(block_widths_.size() - 1)};
  }
  Room room = extent == Extent::one ? Room::one : Room::row;
  return {room, counts_[static_cast<int>(room)]++};
}

Place Planner::result_place(int value) {
  int output = output_of(value);
  if (output >= 0) {
    return {Room::output, static_cast<uint32_t>(output)};
  }
  size_t width = program_.dtype(value).size();
  if (kept_[value]) {
    part_.kept_widths.push_back(static_cast<uint8_t>(width));
    return {Room::kept, static_cast<uint32_t>(part_.kept_widths.size() - 1)};
  }
  return new_place(extents_[value], width);
}

void Planner::emit_block(
    Extent extent,
    BlockFn function,
    const std::array<Place, 3>& in,
    int arity,
    Place out,
    size_t width) {
  Draft draft;
  draft.instruction.function = function;
  draft.instruction.arity = static_cast<uint8_t>(arity);
  draft.instruction.width = static_cast<uint8_t>(width);
  draft.in = in;
  draft.out = out;
  list(extent).push_back(draft);
}

// A value that there are few of, repeated so that each element has one.
Place Planner::spread(int value) {
  if (spread_[value] == kNowhere) {
    size_t width = program_.dtype(value).size();
    Place out = new_place(Extent::element, width);
    emit_block(Extent::element, nullptr, {place(value)}, 1, out, width);
    bool of_rows = extents_[value] == Extent::row && key_.grouped;
    list(Extent::element).back().instruction.kind =
        of_rows ? Instruction::Kind::expand : Instruction::Kind::fill;
    spread_[value] = out;
  }
  return spread_[value];
}

Place Planner::operand(
    int value, Extent extent, bool can_be_scalar, bool* scalar) {
  bool is_one = extents_[value] == Extent::one || is_repeated(value);
  bool is_row = extents_[value] == Extent::row && extent == Extent::element;
  // The value of a row is a scalar for its elements. Not so for powers, whose
  // short cuts for scalars give other bits.
  *scalar = can_be_scalar && (is_one || (is_row && !key_.grouped));
  bool must_spread =
      extent == Extent::element && !*scalar && (is_one || is_row);
  return must_spread ? spread(value) : place(value);
}

// `from` holds a 16-bit value; a place where it is float32.
Place Planner::widened(int value, Extent extent, Place from) {
  bool is_spread = spread_[value] == from;
  if (!is_spread && wide_[value] != kNowhere) {
    return wide_[value];
  }
  Extent own = is_spread            ? Extent::element
               : is_repeated(value) ? Extent::one
                                    : extents_[value];
  own = std::min(own, extent);
  Place out = new_place(own, 4);
  emit_block(
      own, convert_block(program_.dtype(value), float32), {from}, 1, out, 4);
  if (!is_spread) {
    wide_[value] = out;
  }
  return out;
}

void Planner::emit_elementwise(
    const FusedStep& step, Extent extent, Place out) {
  Dtype type = program_.dtype(step.operands[step.arity - 1]);
  std::array<Place, 3> in;
  unsigned mask = 0;
  for (int k = 0; k < step.arity; ++k) {
    bool can_be_scalar = extents_[step.operands[k]] != Extent::row ||
                         step.op != ElementwiseOp::power;
    bool scalar = false;
    in[k] = operand(step.operands[k], extent, can_be_scalar, &scalar);
    mask |= (scalar ? 1u : 0u) << k;
  }
  BlockFn function = elementwise_block(step.op, type, mask);
  bool by_float = !function && is_half(type);
  if (by_float) {
    function = elementwise_block(step.op, float32, mask);
  }
  if (!function) {
    throw std::runtime_error(message(
        elementwise_info(step.op).name, "has no cpu kernel for ", type, "."));
  }
  for (int k = 0; by_float && k < step.arity; ++k) {
    in[k] = widened(step.operands[k], extent, in[k]);
  }
  if (!by_float || !is_half(step.dtype)) {
    emit_block(extent, function, in, step.arity, out, step.dtype.size());
    return;
  }
  Place wide = new_place(extent, 4);
  emit_block(extent, function, in, step.arity, wide, 4);
  emit_block(extent, convert_block(float32, step.dtype), {wide}, 1, out, 2);
}

void Planner::emit_reduce(int value) {
  const FusedStep& step = program_.step_of(value);
  int from = step.operands[0];
  Dtype type = program_.dtype(from);
  Dtype accumulator = reduce_accumulator(step.reduce, type);
  bool scalar;
  Draft draft;
  draft.in[0] = operand(from, Extent::element, false, &scalar);
  draft.instruction.kind = Instruction::Kind::reduce;
  draft.instruction.width = static_cast<uint8_t>(type.size());
  DraftPass& pass = passes_[pass_];
  draft.instruction.which = static_cast<uint32_t>(pass.reductions.size());
  draft.out = {Room::row, 0};
  pass.elements.push_back(draft);
  pass.reductions.push_back(
      {loops_of(step.reduce, type).rows,
       loops_of(step.reduce, accumulator).rows,
       accumulator == step.dtype ? nullptr
                                 : convert_block(accumulator, step.dtype),
       static_cast<uint8_t>(accumulator.size()),
       0});
  place(value) = result_place(value);
  pass.reduced.push_back(place(value));
}

void Planner::emit(int value) {
  const FusedStep& step = program_.step_of(value);
  Extent extent = extents_[value];
  Place out = place(value) == kNowhere ? result_place(value) : place(value);
  if (step.kind == FusedStep::Kind::cast) {
    bool scalar;
    Place in = operand(step.operands[0], extent, false, &scalar);
    emit_block(
        extent,
        convert_block(program_.dtype(step.operands[0]), step.dtype),
        {in},
        1,
        out,
        step.dtype.size());
  } else {
    emit_elementwise(step, extent, out);
  }
  place(value) = out;
}

void Planner::emit_pass(size_t pass) {
  pass_ = pass;
  // Blocks do not outlive a pass.
  spread_.assign(num_values(), kNowhere);
  for (int v = 0; v < num_values(); ++v) {
    bool in_block = place(v) != kNowhere && place(v).room == Room::block;
    place(v) = in_block ? kNowhere : place(v);
    bool wide_in_block = wide_[v] != kNowhere && wide_[v].room == Room::block;
    wide_[v] = wide_in_block ? kNowhere : wide_[v];
  }
  int level = static_cast<int>(pass);
  for (int v = program_.num_inputs(); v < num_values(); ++v) {
    bool is_row = extents_[v] == Extent::row && !is_reduce(v);
    if (needed_[v] && is_row && levels_[v] == level) {
      emit(v);
    }
  }
  emit_elements();
  for (int v = program_.num_inputs(); v < num_values(); ++v) {
    if (needed_[v] && is_reduce(v) && levels_[v] == level + 1) {
      emit_reduce(v);
    }
  }
}

// Steps of elements by turns: all that can be done as chains, then all that
// cannot.
void Planner::emit_elements() {
  std::vector<int> pending;
  std::vector<bool> is_open(num_values(), false);
  for (int v = program_.num_inputs(); v < num_values(); ++v) {
    if (made_[pass_][v]) {
      pending.push_back(v);
      is_open[v] = true;
    }
  }
  for (bool chains = true; !pending.empty(); chains = !chains) {
    std::vector<int> steps;
    std::vector<int> rest;
    for (int v : pending) {
      const FusedStep& step = program_.step_of(v);
      bool ready = is_chainable(program_, v) == chains;
      for (int k = 0; k < step.arity; ++k) {
        ready = ready && !is_open[step.operands[k]];
      }
      if (ready) {
        is_open[v] = false;
      }
      (ready ? steps : rest).push_back(v);
    }
    for (size_t i = 0; i < steps.size();) {
      size_t n = chains ? std::min(kMaxChain, steps.size() - i) : 1;
      // A chain can store a row past the caches, a block routine cannot.
      bool is_row_result = key_.by_rows && output_of(steps[i]) >= 0;
      if (n > 1 || (chains && is_row_result)) {
        emit_chain({steps.begin() + i, steps.begin() + i + n});
      } else {
        emit(steps[i]);
      }
      i += n;
    }
    pending = std::move(rest);
  }
}

// The values that steps of this pass outside of the chain `inside` read.
std::vector<bool> Planner::read_outside(const std::vector<bool>& inside) {
  std::vector<bool> result(num_values(), false);
  for (int v = program_.num_inputs(); v < num_values(); ++v) {
    bool is_reduced_here =
        needed_[v] && is_reduce(v) && levels_[v] == static_cast<int>(pass_) + 1;
    if ((made_[pass_][v] && !inside[v]) || is_reduced_here) {
      const FusedStep& step = program_.step_of(v);
      for (int k = 0; k < step.arity; ++k) {
        result[step.operands[k]] = true;
      }
    }
  }
  return result;
}

void Planner::emit_chain(const std::vector<int>& steps) {
  ChainBuilder builder(program_);
  std::vector<bool> is_inside(num_values(), false);
  for (int v : steps) {
    is_inside[v] = true;
  }
  for (int v : steps) {
    const FusedStep& step = program_.step_of(v);
    for (int k = 0; k < step.arity; ++k) {
      int from = step.operands[k];
      if (is_inside[from]) {
        continue;
      }
      Dtype type = program_.dtype(from);
      bool scalar = false;
      Place source = operand(from, Extent::element, type != bool_, &scalar);
      if (scalar && is_half(type)) {
        source = widened(from, Extent::element, source);
      }
      builder.add_source(from, source, scalar);
    }
  }
  std::vector<bool> is_read = read_outside(is_inside);
  for (int v : steps) {
    if (is_read[v] || output_of(v) >= 0 || kept_[v]) {
      place(v) = place(v) == kNowhere ? result_place(v) : place(v);
      builder.add_sink(v, place(v));
    }
  }
  Draft draft;
  draft.instruction.kind = Instruction::Kind::chain;
  draft.instruction.arity = 0;
  draft.stages = builder.build(steps);
  uint32_t& temporaries = counts_[static_cast<int>(Room::temporary)];
  temporaries = std::max(temporaries, builder.num_temporaries());
  passes_[pass_].elements.push_back(std::move(draft));
}

// An output may lie in an input's memory if the input is not read any more
// once the output is written; within one instruction both is fine.
void Planner::find_donations() {
  size_t num_inputs = program_.inputs.size();
  std::vector<size_t> last_read(num_inputs, 0);
  std::vector<size_t> written(key_.outputs.size(), 0);
  part_.is_streamable.assign(key_.outputs.size(), false);
  last_pass_.assign(num_inputs, 0);
  size_t time = 0;
  size_t pass_number = 0;
  auto read = [&](Place p) {
    if (p.room == Room::input) {
      last_read[p.index] = time;
      last_pass_[p.index] = pass_number;
    } else if (p.room == Room::output) {
      part_.is_streamable[p.index] = false;
    }
  };
  auto write = [&](Place p) {
    if (p.room == Room::output && written[p.index] == 0) {
      written[p.index] = time;
    }
  };
  for (const DraftPass& pass : passes_) {
    for (const Draft& draft : pass.elements) {
      ++time;
      for (int k = 0; k < draft.instruction.arity; ++k) {
        read(draft.in[k]);
      }
      write(draft.out);
      for (const DraftStage& stage : draft.stages) {
        ++time;
        if (stage.role == DraftStage::Role::read) {
          read(stage.place);
        } else if (stage.role == DraftStage::Role::write) {
          write(stage.place);
          if (stage.place.room == Room::output) {
            part_.is_streamable[stage.place.index] = stage.streaming != nullptr;
          }
        }
      }
    }
    ++pass_number;
  }
  for (size_t o = 0; o < key_.outputs.size(); ++o) {
    for (size_t i = 0; i < num_inputs; ++i) {
      part_.may_donate.push_back(
          key_.inputs[i] == InputKind::element &&
          extents_[program_.outputs[key_.outputs[o]]] == Extent::element &&
          last_read[i] <= written[o]);
    }
  }
}

// Values of elements among inputs and outputs lie elsewhere for each block.
void Planner::touch(FusedPass& pass, Place p) {
  std::vector<uint32_t>* touched = nullptr;
  if (p.room == Room::input && key_.inputs[p.index] == InputKind::element) {
    touched = &pass.inputs;
  } else if (
      p.room == Room::output &&
      part_.output_extents[p.index] == Extent::element) {
    touched = &pass.outputs;
  }
  if (touched &&
      std::find(touched->begin(), touched->end(), p.index) == touched->end()) {
    touched->push_back(p.index);
  }
}

std::vector<Instruction> Planner::numbered(const std::vector<Draft>& drafts) {
  std::vector<Instruction> result;
  for (const Draft& draft : drafts) {
    Instruction instruction = draft.instruction;
    for (int k = 0; k < instruction.arity; ++k) {
      instruction.in[k] = position(draft.in[k]);
    }
    if (instruction.kind == Instruction::Kind::chain) {
      instruction.which = static_cast<uint32_t>(part_.chains.size());
      FusedChain& chain = part_.chains.emplace_back();
      chain.first = part_.num_stages;
      part_.num_stages += static_cast<uint32_t>(draft.stages.size());
      for (const DraftStage& stage : draft.stages) {
        bool is_none = stage.role == DraftStage::Role::none;
        chain.stages.push_back(
            {stage.run,
             is_none ? 0 : position(stage.place),
             stage.role,
             stage.width,
             stage.streaming,
             stage.role == DraftStage::Role::read &&
                 stage.place.room == Room::input &&
                 last_pass_[stage.place.index] == pass_});
      }
    } else if (instruction.kind != Instruction::Kind::reduce) {
      instruction.out = position(draft.out);
    }
    result.push_back(instruction);
  }
  return result;
}

// Numbers all places through and notes what each pass touches.
void Planner::finish() {
  for (auto [room, count] :
       {std::pair{Room::input, program_.inputs.size()},
        {Room::output, key_.outputs.size()},
        {Room::block, part_.block_widths.size()},
        {Room::kept, part_.kept_widths.size()}}) {
    counts_[static_cast<int>(room)] = static_cast<uint32_t>(count);
  }
  for (int i = 0; i < kNumRooms; ++i) {
    part_.rooms[i + 1] = part_.rooms[i] + counts_[i];
  }
  part_.ones = numbered(ones_);
  for (pass_ = 0; pass_ < passes_.size(); ++pass_) {
    DraftPass& draft = passes_[pass_];
    FusedPass& pass = part_.passes.emplace_back();
    pass.rows = numbered(draft.rows);
    pass.elements = numbered(draft.elements);
    pass.reductions = draft.reductions;
    for (size_t i = 0; i < draft.reduced.size(); ++i) {
      pass.reductions[i].out = position(draft.reduced[i]);
    }
    for (const Draft& d : draft.elements) {
      for (int k = 0; k < d.instruction.arity; ++k) {
        touch(pass, d.in[k]);
      }
      if (d.stages.empty()) {
        touch(pass, d.out);
      }
      for (const DraftStage& stage : d.stages) {
        if (stage.role == DraftStage::Role::read ||
            stage.role == DraftStage::Role::write) {
          touch(pass, stage.place);
        }
      }
    }
  }
}

FusedPart Planner::plan() {
  find_needed();
  classify();
  spread_over_passes();
  places_.assign(num_values(), kNowhere);
  wide_.assign(num_values(), kNowhere);
  spread_.assign(num_values(), kNowhere);
  for (int v = 0; v < num_values(); ++v) {
    if (program_.is_input(v)) {
      place(v) = {Room::input, static_cast<uint32_t>(v)};
    } else if (needed_[v] && extents_[v] == Extent::one) {
      emit(v);
    }
  }
  for (size_t pass = 0; pass < passes_.size(); ++pass) {
    emit_pass(pass);
  }
  assign_blocks(passes_, block_widths_, part_.block_widths);
  find_donations();
  for (uint32_t o : key_.outputs) {
    part_.output_extents.push_back(extents_[program_.outputs[o]]);
  }
  for (uint32_t i = 0; i < key_.inputs.size(); ++i) {
    if (key_.inputs[i] == InputKind::row) {
      part_.row_inputs.push_back(i);
    }
  }
  finish();
  part_.key = std::move(key_);
  return std::move(part_);
}

}  // namespace

bool FusedPart::is_read_again(uint32_t output) const {
  int passes_with = 0;
  for (const FusedPass& pass : passes) {
    passes_with += static_cast<int>(
        std::count(pass.outputs.begin(), pass.outputs.end(), output));
  }
  return passes_with > 1;
}

FusedPart make_fused_part(const FusedProgram& program, FusedKey key) {
  return Planner(program, std::move(key)).plan();
}

}  // namespace mlx::core::cpu
