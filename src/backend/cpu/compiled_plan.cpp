// What a plan is made of: which values are needed, how many there are of each,
// in which pass over a row they are made. A value that a reduction and a later
// pass want is kept if it was dear.
#include "backend/cpu/compiled_plan.h"

#include <algorithm>

#include "backend/cpu/compiled_planner.h"

namespace mlx::core::cpu {

namespace {

// Buffers for a row of elements, at most.
constexpr size_t kMaxKept = 4;

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

}  // namespace

void FusedPlanner::find_needed() {
  needed_.assign(num_values(), false);
  output_of_.assign(num_values(), -1);
  uses_.assign(num_values(), 0);
  for (size_t o = 0; o < key_.outputs.size(); ++o) {
    int value = program_.outputs[key_.outputs[o]];
    needed_[value] = true;
    ++uses_[value];
    output_of_[value] = static_cast<int>(o);
  }
  for (int v = num_values() - 1; v >= program_.num_inputs(); --v) {
    const FusedStep& step = program_.step_of(v);
    for (int k = 0; needed_[v] && k < step.arity; ++k) {
      needed_[step.operands[k]] = true;
      ++uses_[step.operands[k]];
    }
  }
}

std::span<const int> FusedPlanner::reads_of(int value) const {
  const FusedStep& step = program_.step_of(value);
  std::span<const int> own(step.operands.data(), step.arity);
  if (step.kind != FusedStep::Kind::reduce || step.reduce != ReduceType::sum ||
      program_.is_input(own[0]) || uses_[own[0]] > 1) {
    return own;
  }
  const FusedStep& product = program_.step_of(own[0]);
  std::span<const int> factors(product.operands.data(), product.arity);
  bool is_product = product.kind == FusedStep::Kind::elementwise &&
                    product.dtype == float32 &&
                    (product.op == ElementwiseOp::multiply ||
                     product.op == ElementwiseOp::square);
  bool fits =
      is_product && std::all_of(factors.begin(), factors.end(), [&](int v) {
        return extents_[v] == Extent::element && !is_repeated(v);
      });
  return fits ? factors : own;
}

// How many values there really are of each, and how many reductions lie before
// them.
void FusedPlanner::classify() {
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
void FusedPlanner::spread_over_passes() {
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
        for (int from : reads_of(v)) {
          wanted[from] = wanted[from] || levels_[v] == pass + 1;
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

// An output may lie in an input's memory if the input is not read any more
// once the output is written; within one instruction both is fine.
void FusedPlanner::find_donations() {
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
void FusedPlanner::touch(FusedPass& pass, Place p) {
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

std::vector<Instruction> FusedPlanner::numbered(
    const std::vector<Draft>& drafts) {
  std::vector<Instruction> result;
  for (const Draft& draft : drafts) {
    Instruction instruction = draft.instruction;
    for (int k = 0; k < instruction.arity; ++k) {
      instruction.in[k] = position(draft.in[k]);
      // A single value among those of rows is a scalar.
      Room room = draft.in[k].room;
      instruction.is_padded =
          instruction.is_padded && (room == Room::row || room == Room::one);
    }
    instruction.is_padded =
        instruction.is_padded && draft.out.room == Room::row;
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
void FusedPlanner::finish() {
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

FusedPart FusedPlanner::plan() {
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

bool FusedPart::is_read_again(uint32_t output) const {
  int passes_with = 0;
  for (const FusedPass& pass : passes) {
    passes_with += static_cast<int>(
        std::count(pass.outputs.begin(), pass.outputs.end(), output));
  }
  return passes_with > 1;
}

FusedPart make_fused_part(const FusedProgram& program, FusedKey key) {
  return FusedPlanner(program, std::move(key)).plan();
}

}  // namespace mlx::core::cpu
