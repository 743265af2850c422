// Nearly always all outputs have one shape, which is looked for first.
#include "backend/cpu/compiled_split.h"

#include <algorithm>
#include <numeric>

#include "mlx/utils.h"

namespace mlx::core::cpu {

namespace {

// Whether `part` is `whole` but for a last axis of length 1.
bool is_rows_of(const Shape& part, const Shape& whole) {
  return part.size() == whole.size() && !part.empty() && part.back() == 1 &&
         std::equal(part.begin(), part.end() - 1, whole.begin());
}

bool all_together(
    const FusedShare& share,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs) {
  if (!share.has_reductions) {
    return std::all_of(outputs.begin(), outputs.end(), [&](const array& out) {
      return out.shape() == share.shape;
    });
  }
  auto fits = [&](const array& a) {
    return a.shape() == share.shape || is_rows_of(a.shape(), share.shape);
  };
  return std::all_of(outputs.begin(), outputs.end(), fits) &&
         std::all_of(inputs.begin(), inputs.end(), [&](const array& in) {
           return in.size() == 1 || fits(in) ||
                  (in.ndim() == 1 && in.shape(0) == share.shape.back());
         });
}

// What each value iterates over: all inputs that it is made of, and before
// them those of the reductions.
std::vector<FusedShare> iterated_shapes(
    const FusedProgram& program, const std::vector<array>& inputs) {
  std::vector<FusedShare> values;
  for (const array& in : inputs) {
    values.push_back({{}, in.shape(), false, false});
  }
  for (const FusedStep& step : program.steps) {
    FusedShare value = values[step.operands[0]];
    for (int k = 1; k < step.arity; ++k) {
      const FusedShare& other = values[step.operands[k]];
      if (value.shape != other.shape) {
        value.shape = broadcast_shapes(value.shape, other.shape);
      }
      value.has_reductions = value.has_reductions || other.has_reductions;
    }
    value.has_reductions =
        value.has_reductions || step.kind == FusedStep::Kind::reduce;
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

std::vector<FusedShare> split_outputs(
    const FusedProgram& program,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs) {
  FusedShare all;
  all.shape = Compiled::iteration_shape(inputs);
  all.has_reductions = program.has_reductions();
  if (all_together(all, inputs, outputs)) {
    all.outputs.resize(outputs.size());
    std::iota(all.outputs.begin(), all.outputs.end(), 0);
    std::vector<FusedShare> shares;
    shares.push_back(std::move(all));
    return shares;
  }
  std::vector<FusedShare> values = iterated_shapes(program, inputs);
  std::vector<FusedShare> shares;
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    FusedShare& value = values[program.outputs[o]];
    auto it = std::find_if(
        shares.begin(), shares.end(), [&](const FusedShare& share) {
          return share.shape == value.shape &&
                 share.has_reductions == value.has_reductions;
        });
    if (it == shares.end()) {
      it = shares.insert(shares.end(), value);
    }
    it->outputs.push_back(o);
  }
  return shares;
}

}  // namespace mlx::core::cpu
