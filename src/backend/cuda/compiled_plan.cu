// Arguments and kernels of fused parts.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backend/cuda/compiled_plan.h"
#include "backend/cuda/device/fast_divisor.cuh"
#include "backend/cuda/jit.h"

namespace mlx::core::cuda {

namespace {

// The value of a number of a floating type that the host has, or NaN.
double known_value(const array& a) {
  uint64_t bits[2] = {};
  if (!is_number(a) || !Encoder::host_scalar(a, bits)) {
    return std::nan("");
  }
  auto low = static_cast<uint32_t>(bits[0]);
  switch (a.dtype().val()) {
    case Dtype::Val::float32:
      return std::bit_cast<float>(low);
    case Dtype::Val::float64:
      return std::bit_cast<double>(bits[0]);
    case Dtype::Val::bfloat16:
      return std::bit_cast<float>(low << 16);
    case Dtype::Val::float16:
      return static_cast<float>(
          std::bit_cast<float16_t>(static_cast<uint16_t>(low)));
    default:
      return std::nan("");
  }
}

// What a step says of its second operand, a number: powers with some exponents
// need no logarithm, quotients by some divisors no division but the reciprocal,
// which travels in the upper half of the word.
void note_number(
    const FusedStep& step,
    const array& number,
    FusedForm::Input& in,
    uint64_t& word) {
  double value = known_value(number);
  Dtype t = number.dtype();
  if (step.op == ElementwiseOp::divide) {
    in.divisor = fused_divisor(t, value);
    if (in.divisor != FusedDivisor::any && t.val() != Dtype::Val::float64) {
      auto reciprocal = 1.0f / static_cast<float>(value);
      word = (word & 0xffffffffu) |
             static_cast<uint64_t>(std::bit_cast<uint32_t>(reciprocal)) << 32;
    }
  } else if (
      step.op == ElementwiseOp::power && t.val() != Dtype::Val::float64 &&
      (value == 2 || value == 3 || value == 0.5)) {
    in.read = FusedRead::literal;
    in.literal = std::bit_cast<uint32_t>(static_cast<float>(value));
  }
}

}  // namespace

std::shared_ptr<const FusedKernels> FusedKernels::of(const Compiled& op) {
  auto plan = op.plan(Device::gpu);
  if (!plan) {
    plan = op.set_plan(Device::gpu, std::make_shared<FusedKernels>());
  }
  return std::static_pointer_cast<const FusedKernels>(plan);
}

cudaKernel_t FusedKernels::find(
    const FusedProgram& program, const FusedForm& form) const {
  std::lock_guard lock(mutex_);
  for (const auto& [known, kernel] : kernels_) {
    if (known == form) {
      return kernel;
    }
  }
  cudaKernel_t kernel =
      jit::function(fused_text(program, form), "fused", jit::Origin::ours);
  kernels_.emplace_back(form, kernel);
  return kernel;
}

// Only full outputs take over memory: an input that lies like a partial one is
// read many times.
void allocate_outputs(
    const std::vector<array>& inputs,
    const Shape& shape,
    const array* layout,
    std::vector<array>& outputs,
    Encoder& e) {
  bool is_row_major = !layout || layout->flags().row_contiguous;
  for (array& out : outputs) {
    bool done = false;
    for (const array& in : inputs) {
      bool fits = !done && out.shape() == shape && in.shape() == shape &&
                  (is_row_major ? in.flags().row_contiguous
                                : in.strides() == layout->strides());
      done = done || (fits && e.donate(in, out));
    }
    if (!done && is_row_major) {
      e.allocate(out);
    } else if (!done) {
      e.allocate_like(out, *layout);
    }
  }
}

FusedCall::FusedCall(
    const FusedProgram& program,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e) {
  size_t count = inputs.size();
  form.inputs.resize(count);
  form.outputs.resize(outputs.size());
  for (size_t k = 0; k < count; ++k) {
    uint64_t bits[2] = {};
    if (is_number(inputs[k])) {
      form.inputs[k].read = FusedRead::number;
    }
    if (is_number(inputs[k]) && Encoder::host_scalar(inputs[k], bits)) {
      form.inputs[k].read = FusedRead::value;
      from.push_back(bits[0]);
    } else {
      from.push_back(reinterpret_cast<uint64_t>(e.in(inputs[k])));
    }
  }
  for (array& out : outputs) {
    to.push_back(reinterpret_cast<uint64_t>(e.out(out)));
  }
  for (const FusedStep& step : program.steps) {
    int k = step.operands[1];
    if (step.kind == FusedStep::Kind::elementwise && step.arity == 2 &&
        program.is_input(k)) {
      note_number(step, inputs[k], form.inputs[k], from[k]);
    }
  }
}

bool FusedCall::fits(const FusedProgram& program) {
  // Of 32764 bytes; strides of many layouts need some.
  constexpr size_t kMostWords = 2048;
  return program.inputs.size() + program.outputs.size() <= kMostWords;
}

std::vector<uint64_t> FusedCall::words(const FusedLayouts& layouts) const {
  std::vector<uint64_t> all = head;
  for (const auto* part : {&from, &to}) {
    all.insert(all.end(), part->begin(), part->end());
  }
  for (int i = 0; i < form.axes; ++i) {
    FastDivisor by(static_cast<uint32_t>(layouts.sizes()[i]));
    all.push_back(by.divisor | static_cast<uint64_t>(by.multiplier) << 32);
    all.push_back(by.shift);
  }
  for (const Strides& strides : layouts.strides()) {
    for (int64_t stride : strides) {
      all.push_back(static_cast<uint64_t>(stride));
    }
  }
  return all;
}

void FusedCall::launch(
    const Compiled& op,
    const FusedLayouts& layouts,
    dim3 grid,
    dim3 block,
    Encoder& e) const {
  std::vector<uint64_t> argument = words(layouts);
  void* address = argument.data();
  cudaKernel_t kernel = FusedKernels::of(op)->find(op.program(), form);
  jit::launch_overlapped(kernel, grid, block, &address, e);
}

}  // namespace mlx::core::cuda
