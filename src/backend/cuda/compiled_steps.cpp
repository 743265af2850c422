// Fused parts by the kernels of single operations.
#include "backend/cuda/compiled.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/reduce.h"
#include "mlx/utils.h"

namespace mlx::core::cuda {

namespace {

Shape step_shape(const FusedStep& step, const std::vector<array>& values) {
  Shape shape = values[step.operands[0]].shape();
  for (int k = 1; k < step.arity; ++k) {
    shape = broadcast_shapes(shape, values[step.operands[k]].shape());
  }
  if (step.kind == FusedStep::Kind::reduce && !shape.empty()) {
    shape.back() = 1;
  }
  return shape;
}

void run_step(
    const FusedStep& step,
    const std::vector<array>& values,
    array& out,
    Encoder& e) {
  Stream s(0, Device::gpu);  // no kernel function looks at it
  std::vector<array> operands;
  for (int k = 0; k < step.arity; ++k) {
    operands.push_back(values[step.operands[k]]);
  }
  switch (step.kind) {
    case FusedStep::Kind::elementwise:
      elementwise(Elementwise(s, step.op), operands, out, e);
      break;
    case FusedStep::Kind::cast:
      as_type(AsType(s, {step.dtype}), operands[0], out, e);
      break;
    case FusedStep::Kind::reduce: {
      std::vector<int> axes;
      if (operands[0].ndim() > 0) {
        axes.push_back(static_cast<int>(operands[0].ndim()) - 1);
      }
      reduce(Reduce(s, {step.reduce, axes, step.dtype}), operands[0], out, e);
      break;
    }
  }
}

}  // namespace

void compiled_by_steps(
    const Compiled& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e) {
  const FusedProgram& program = op.program();
  std::vector<array> values = inputs;
  for (const FusedStep& step : program.steps) {
    int value = static_cast<int>(values.size());
    array out(step_shape(step, values), step.dtype, nullptr, {});
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (program.outputs[k] == value) {
        out = outputs[k];
      }
    }
    run_step(step, values, out, e);
    values.push_back(out);
  }
}

}  // namespace mlx::core::cuda
