// Layouts, arguments and kernels of fused parts.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backend/common/layouts.h"
#include "backend/cuda/compiled_plan.h"
#include "backend/cuda/device/fast_divisor.cuh"
#include "backend/cuda/jit.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cuda {

namespace {

// 1 along axes on which `out` has one element of several.
Strides guard_strides(const array& out, const Shape& shape) {
  Strides strides(shape.size(), 0);
  size_t extra = shape.size() - out.ndim();
  for (size_t i = 0; i < shape.size(); ++i) {
    strides[i] = i < extra || out.shape()[i - extra] == 1 ? 1 : 0;
  }
  return strides;
}

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

// Axes merged where all operands allow it; the last one stays what it is where
// that is wanted.
void merge(Shape& sizes, std::vector<Strides>& strides, bool keeps_last) {
  Shape outer = sizes;
  std::vector<Strides> of_outer = strides;
  if (keeps_last) {
    outer.resize(sizes.size() - 1);
    for (Strides& s : of_outer) {
      s.resize(outer.size());
    }
  }
  auto [merged, merged_strides] = collapse_contiguous_dims(outer, of_outer);
  if (keeps_last) {
    merged.push_back(sizes.back());
    for (size_t k = 0; k < strides.size(); ++k) {
      merged_strides[k].push_back(strides[k].back());
    }
  }
  sizes = std::move(merged);
  strides = std::move(merged_strides);
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

FusedLayouts::FusedLayouts(
    const Shape& shape,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    FusedForm& form,
    bool keeps_last) {
  size_t size = element_count(shape);
  std::vector<Strides> strides = {make_contiguous_strides(shape)};
  for (const array& in : inputs) {
    if (!is_number(in)) {
      strides.push_back(broadcast_strides(in, shape));
    }
  }
  for (const array& out : outputs) {
    if (out.size() != size) {
      Strides own = make_contiguous_strides(out.shape());
      for (size_t i = 0; i < out.ndim(); ++i) {
        own[i] = out.shape()[i] == 1 ? 0 : own[i];
      }
      Strides seen(shape.size(), 0);
      std::copy(own.begin(), own.end(), seen.end() - own.size());
      strides.push_back(seen);
      strides.push_back(guard_strides(out, shape));
    }
  }
  sizes_ = shape;
  merge(sizes_, strides, keeps_last);
  dense_ = make_contiguous_strides(sizes_);
  form.axes = static_cast<uint8_t>(sizes_.size() - (keeps_last ? 1 : 0));
  auto next = strides.begin() + 1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    form.inputs[k].layout = is_number(inputs[k]) ? 0 : layout_of(*next++);
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].size() != size) {
      form.outputs[k].layout = layout_of(*next++);
      form.outputs[k].guard = layout_of(*next++);
    }
  }
  form.layouts = static_cast<uint16_t>(layouts_.size());
  form.wide = !is_narrow(size);
}

uint16_t FusedLayouts::layout_of(const Strides& strides) {
  if (strides == dense_) {
    return 0;
  }
  auto found = std::find(layouts_.begin(), layouts_.end(), strides);
  if (found == layouts_.end()) {
    layouts_.push_back(strides);
    return static_cast<uint16_t>(layouts_.size());
  }
  return static_cast<uint16_t>(found - layouts_.begin() + 1);
}

bool FusedLayouts::is_narrow(size_t size) const {
  bool narrow = size < kMostNarrow;
  for (const Strides& strides : layouts_) {
    int64_t reach = 0;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      reach += std::abs(strides[i]) * (sizes_[i] - 1);
    }
    narrow = narrow && reach < static_cast<int64_t>(kMostNarrow);
  }
  return narrow;
}

FusedRead FusedLayouts::read_of(int layout, int pack, bool is_aligned) const {
  const Strides& strides = layout == 0 ? dense_ : layouts_[layout - 1];
  if (strides.back() == 0) {
    return FusedRead::splat;
  }
  bool even = pack > 1 && is_aligned && strides.back() == 1;
  for (size_t i = 0; i + 1 < strides.size(); ++i) {
    even = even && strides[i] % pack == 0;
  }
  return even ? FusedRead::pack : FusedRead::pieces;
}

void FusedLayouts::append_to(std::vector<uint64_t>& words, int axes) const {
  for (int i = 0; i < axes; ++i) {
    FastDivisor by(static_cast<uint32_t>(sizes_[i]));
    words.push_back(by.divisor | static_cast<uint64_t>(by.multiplier) << 32);
    words.push_back(by.shift);
  }
  for (const Strides& strides : layouts_) {
    for (int64_t stride : strides) {
      words.push_back(static_cast<uint64_t>(stride));
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
  layouts.append_to(all, form.axes);
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
  jit::launch(kernel, grid, block, 0, &address, e);
}

}  // namespace mlx::core::cuda
