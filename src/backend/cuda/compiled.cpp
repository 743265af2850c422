// The executor of fused parts: in which order the arrays are walked, where the
// outputs lie, and which of a program's kernels does it.
#include "backend/cuda/compiled.h"

#include <algorithm>
#include <typeinfo>

#include "backend/common/layouts.h"
#include "backend/cuda/batch.h"
#include "backend/cuda/compiled_list.h"
#include "backend/cuda/copy.h"
#include "backend/cuda/elementwise.h"
#include "ops/softmax.h"

namespace mlx::core::cuda {

namespace {

// What a thread of a kernel is to do at most, in instructions, and elements.
constexpr int kMostWeight = 320;
constexpr int kMostElements = 32;
// Beyond these a thread makes even less than a pack: the bytes are registers.
constexpr int kMostPackWeight = 4 * kMostWeight;
constexpr size_t kMostBytes = 512;

// Norms of fewer elements go into one launch with other small operations.
constexpr size_t kFewElements = 8192;

// The layout of all inputs but numbers, where they have no gaps and it is one.
// With numbers only, any will do.
bool find_common_layout(
    const std::vector<array>& inputs,
    const Shape& shape,
    const std::vector<array>& outputs,
    const array** layout) {
  *layout = nullptr;
  for (const array& in : inputs) {
    if (is_number(in)) {
      continue;
    }
    if (in.shape() != shape || !in.flags().contiguous ||
        in.data_size() != in.size() ||
        (*layout && in.strides() != (*layout)->strides())) {
      return false;
    }
    *layout = *layout ? *layout : &in;
  }
  bool is_row_major = !*layout || (*layout)->flags().row_contiguous;
  size_t size = element_count(shape);
  return std::all_of(outputs.begin(), outputs.end(), [&](const array& out) {
    return out.size() == size && (is_row_major || out.shape() == shape);
  });
}

// How many elements an access and a thread take.
void choose_packs(
    const FusedProgram& program,
    const std::vector<array>& inputs,
    FusedForm& form) {
  size_t widest = 1;
  size_t bytes = 0;
  int arrays = 0;
  for (const array& in : inputs) {
    if (!is_number(in)) {
      ++arrays;
      widest = std::max(widest, in.itemsize());
      bytes += in.itemsize();
    }
  }
  for (int v : program.outputs) {
    widest = std::max<size_t>(widest, program.dtype(v).size());
  }
  int pack = static_cast<int>(16 / widest);
  int weight = std::max(1, fused_weight(program, form));
  while (pack > 1 && (pack * weight > kMostPackWeight ||
                      bytes * static_cast<size_t>(pack) > kMostBytes)) {
    pack /= 2;
  }
  // As measured of single operations: one pack of one input is as fast as a
  // copy, of two inputs two are.
  int packs = arrays == 2 ? 2 : 1;
  while (packs > 1 && (packs * pack * weight > kMostWeight ||
                       packs * pack > kMostElements)) {
    packs /= 2;
  }
  form.pack = static_cast<uint8_t>(pack);
  form.packs = static_cast<uint8_t>(packs);
}

// Arrays in one order: packs where all addresses allow them.
void plan_flat(
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    FusedCall& call) {
  FusedForm& form = call.form;
  auto pack = static_cast<size_t>(form.pack);
  bool is_even = true;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!is_number(inputs[k])) {
      is_even =
          is_even && is_aligned(call.from[k], pack * inputs[k].itemsize());
    }
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    is_even = is_even && is_aligned(call.to[k], pack * outputs[k].itemsize());
  }
  if (!is_even) {
    form.pack = 1;
    form.packs = 4;
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!is_number(inputs[k])) {
      form.inputs[k].read = form.pack > 1 ? FusedRead::pack : FusedRead::splat;
    }
  }
}

// Arrays of any strides: packs along the innermost axis where rows consist of
// whole ones.
void plan_strided(
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    FusedLayouts& layouts,
    FusedCall& call) {
  FusedForm& form = call.form;
  int64_t inner = layouts.sizes().back();
  auto fits = [&](int64_t pack) {
    bool even = inner % pack == 0;
    for (size_t k = 0; k < outputs.size(); ++k) {
      bool is_full = form.outputs[k].layout == 0;
      size_t bytes = static_cast<size_t>(pack) * outputs[k].itemsize();
      even = even && (!is_full || is_aligned(call.to[k], bytes));
    }
    return even;
  };
  while (form.pack > 1 && !fits(form.pack)) {
    form.pack /= 2;
  }
  form.packs = std::min<uint8_t>(form.packs, 2);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!is_number(inputs[k])) {
      form.inputs[k].read = layouts.read_of(
          form.inputs[k].layout,
          form.pack,
          is_aligned(call.from[k], form.pack * inputs[k].itemsize()));
    }
  }
}

void run_elements(
    const Compiled& op,
    const std::vector<array>& given,
    const Shape& shape,
    std::vector<array>& outputs,
    Encoder& e) {
  const FusedProgram& program = op.program();
  const array* layout = nullptr;
  bool is_flat = find_common_layout(given, shape, outputs, &layout);
  std::vector<array> copies;
  const std::vector<array>* inputs = &given;
  for (const array& in : given) {
    if (!is_flat && copies.empty() && is_transposed(in, shape)) {
      copies = with_rows(given, shape, e);
      inputs = &copies;
    }
  }
  auto& list = e.waiting<FusedList>();
  if (list.will_write(*inputs)) {
    e.flush();  // before memory is taken over: the list holds its inputs
  }
  allocate_outputs(*inputs, shape, is_flat ? layout : nullptr, outputs, e);
  FusedCall call(program, *inputs, outputs, e);
  choose_packs(program, *inputs, call.form);
  FusedLayouts layouts;
  size_t size = element_count(shape);
  call.head = {size};
  if (is_flat) {
    call.form.wide = size >= FusedLayouts::kMostNarrow;
    plan_flat(*inputs, outputs, call);
    call.form.has_tail = size % call.form.pack != 0;
  } else {
    layouts = FusedLayouts(shape, *inputs, outputs, call.form);
    plan_strided(*inputs, outputs, layouts, call);
  }
  size_t of_block = size_t(kFusedThreads) * call.form.pack * call.form.packs;
  auto blocks = static_cast<uint32_t>((size + of_block - 1) / of_block);
  list.add(op, call, layouts, blocks, *inputs, outputs, e);
}

// Among small operations that wait in the encoder's list, a few entries more
// cost less than to end the list and a launch; in a recording, where a launch
// costs about as much as an entry, only very few elements do. Single
// elementwise operations on arrays of one layout are noted there.
bool belongs_to_list(
    const FusedProgram& program,
    const std::vector<array>& inputs,
    const Shape& shape,
    Encoder& e) {
  constexpr size_t kFewSteps = 6;
  size_t most = e.is_recording() ? 256 : BatchEntry::most_elements;
  size_t size = element_count(shape);
  auto is_known = [&](const FusedStep& step) {
    if (step.arity == 3) {
      return batches(step.dtype);
    }
    bool is_cast = step.kind == FusedStep::Kind::cast;
    return step.kind != FusedStep::Kind::reduce &&
           batches(
               is_cast ? ElementwiseOp::real : step.op,
               program.dtype(step.operands[0]),
               step.dtype);
  };
  auto is_plain = [&](const array& in) {
    return is_number(in) || (in.size() == size && in.flags().row_contiguous);
  };
  return e.is_collecting() && size <= most &&
         program.steps.size() <= kFewSteps &&
         std::all_of(program.steps.begin(), program.steps.end(), is_known) &&
         std::all_of(inputs.begin(), inputs.end(), is_plain);
}

}  // namespace

void compiled(
    const Compiled& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e) {
  const FusedProgram& program = op.program();
  Shape shape = Compiled::iteration_shape(inputs);
  bool is_rows = program.has_reductions();
  bool has_rows = !shape.empty() && shape.back() > 1;
  if (element_count(shape) == 0 || !FusedCall::fits(program) ||
      (is_rows && !has_rows) || belongs_to_list(program, inputs, shape, e)) {
    compiled_by_steps(op, inputs, outputs, e);
  } else if (is_rows) {
    compiled_rows(op, inputs, shape, outputs, e);
  } else {
    run_elements(op, inputs, shape, outputs, e);
  }
}

// The kernel for softmax alone takes 0.67 of the time of one made for a part,
// on an H200, which is more than a pass that is saved gives.
bool better_alone(const Primitive& op, const Shape& shape) {
  return typeid(op) == typeid(Softmax) || element_count(shape) <= kFewElements;
}

}  // namespace mlx::core::cuda
