// From steps to instructions. Values that there are few of (one, or one a row)
// are made apart from those of elements, once; 16-bit floats are widened and
// rounded around the functions that have no routine for them.
#include <algorithm>

#include "backend/cpu/compiled_chain.h"
#include "backend/cpu/compiled_planner.h"
#include "types/error.h"

namespace mlx::core::cpu {

namespace {

// Steps of a chain, at most: where the compiler does not optimize, each stage
// takes room on the stack.
constexpr size_t kMaxChain = 200;
// Inputs of elements that a chain reads at most: memory serves few streams at a
// time (a sum of 8 inputs runs at 29 GB/s, of 26 at 9; Zen 3). The next chain
// goes on from blocks in a cache.
constexpr size_t kMaxStreams = 8;

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

}  // namespace

Place FusedPlanner::new_place(Extent extent, size_t width) {
  if (extent == Extent::element) {
    block_widths_.push_back(static_cast<uint8_t>(width));
    return {Room::block, static_cast<uint32_t>(block_widths_.size() - 1)};
  }
  Room room = extent == Extent::one ? Room::one : Room::row;
  return {room, counts_[static_cast<int>(room)]++};
}

Place FusedPlanner::result_place(int value) {
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

void FusedPlanner::emit_block(
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
Place FusedPlanner::spread(int value) {
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

Place FusedPlanner::operand(
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
Place FusedPlanner::widened(int value, Extent extent, Place from) {
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

void FusedPlanner::emit_elementwise(
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
    // Operations on float32 do no harm to what they are not asked for.
    list(extent).back().instruction.is_padded =
        type == float32 && step.dtype == float32;
    return;
  }
  Place wide = new_place(extent, 4);
  emit_block(extent, function, in, step.arity, wide, 4);
  emit_block(extent, convert_block(float32, step.dtype), {wide}, 1, out, 2);
}

void FusedPlanner::emit_reduce(int value) {
  const FusedStep& step = program_.step_of(value);
  int from = step.operands[0];
  Dtype type = program_.dtype(from);
  Dtype accumulator = reduce_accumulator(step.reduce, type);
  bool scalar;
  Draft draft;
  std::span<const int> reads = reads_of(value);
  bool of_products = reads[0] != from;
  draft.instruction.arity = of_products ? 2 : 1;
  for (size_t k = 0; k < draft.instruction.arity; ++k) {
    // A square has one operand.
    int read = reads[std::min(k, reads.size() - 1)];
    draft.in[k] = operand(read, Extent::element, false, &scalar);
  }
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

void FusedPlanner::emit(int value) {
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

void FusedPlanner::emit_pass(size_t pass) {
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

// How many of `steps` from `begin` on one chain takes.
size_t FusedPlanner::chain_length(const std::vector<int>& steps, size_t begin) {
  std::vector<int> streams;
  size_t end = std::min(steps.size(), begin + kMaxChain);
  for (size_t i = begin; i < end; ++i) {
    const FusedStep& step = program_.step_of(steps[i]);
    for (int k = 0; k < step.arity; ++k) {
      int from = step.operands[k];
      bool is_stream =
          program_.is_input(from) && key_.inputs[from] == InputKind::element;
      if (is_stream &&
          std::find(streams.begin(), streams.end(), from) == streams.end()) {
        streams.push_back(from);
      }
    }
    if (streams.size() > kMaxStreams && i > begin) {
      part_.has_many_streams = true;
      return i - begin;
    }
  }
  return end - begin;
}

// Steps of elements by turns: all that can be done as chains, then all that
// cannot.
void FusedPlanner::emit_elements() {
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
      size_t n = chains ? chain_length(steps, i) : 1;
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
std::vector<bool> FusedPlanner::read_outside(const std::vector<bool>& inside) {
  std::vector<bool> result(num_values(), false);
  for (int v = program_.num_inputs(); v < num_values(); ++v) {
    bool is_reduced_here =
        needed_[v] && is_reduce(v) && levels_[v] == static_cast<int>(pass_) + 1;
    if ((made_[pass_][v] && !inside[v]) || is_reduced_here) {
      for (int from : reads_of(v)) {
        result[from] = true;
      }
    }
  }
  return result;
}

void FusedPlanner::emit_chain(const std::vector<int>& steps) {
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

}  // namespace mlx::core::cpu
