// The executor of elementwise operations: decides in which order the arrays
// are walked and where the output lies, then launches one kernel.
#include <algorithm>

#include "backend/common/layouts.h"
#include "backend/cuda/copy.h"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/elementwise_find.h"

namespace mlx::core::cuda {

// An operand whose innermost axis jumps while another axis is contiguous has
// its elements in as many sectors of memory: a large one is transposed first,
// in tiles.
bool is_transposed(const array& a, const Shape& shape) {
  constexpr size_t kLarge = size_t(1) << 20;
  if (a.size() < kLarge || a.shape() != shape || a.ndim() < 2) {
    return false;
  }
  auto [merged, strides] = collapse_contiguous_dims(a);
  size_t last = merged.size() - 1;
  return merged.size() >= 2 && strides[last] > 1 && strides[last - 1] == 1 &&
         merged[last] >= 32 && merged[last - 1] >= 32;
}

std::vector<array> with_rows(
    const std::vector<array>& inputs, const Shape& shape, Encoder& e) {
  std::vector<array> copies;
  for (const array& in : inputs) {
    copies.push_back(is_transposed(in, shape) ? row_contiguous(in, e) : in);
  }
  return copies;
}

namespace {

// Gives out its memory: an input's when it is free and fits, else new. With a
// layout, out takes it.
void prepare_output(
    const std::vector<array>& inputs,
    array& out,
    const array* layout,
    Encoder& e) {
  for (const array& in : inputs) {
    bool fits =
        in.shape() == out.shape() && (layout ? in.strides() == layout->strides()
                                             : in.flags().row_contiguous);
    if (fits && e.donate_to_noted(in, out)) {
      return;
    }
  }
  if (layout) {
    e.allocate_like(out, *layout);
  } else {
    e.allocate(out);
  }
}

// What a launch needs to know, and which operands are numbers that travel with
// it or stay the same along the innermost axis.
template <int arity>
struct Description {
  StridedArgs<arity> args{};
  uint32_t immediates = 0;
  uint32_t splats = 0;
};

// Axes and addresses of the operands.
template <int arity>
Description<arity> describe(
    const char* name,
    const std::vector<array>& inputs,
    array& out,
    bool in_memory_order,
    Encoder& e) {
  Description<arity> found;
  StridedArgs<arity>& args = found.args;
  args.size = out.size();
  args.wide = !fits_32_bits(out.size());
  if (in_memory_order || out.size() == 1) {
    args.axes.ndim = 1;
    for (int k = 0; k < arity; ++k) {
      args.axes.strides[k][0] = inputs[k].size() == 1 ? 0 : 1;
    }
  } else {
    std::vector<Strides> strides;
    for (const array& in : inputs) {
      strides.push_back(broadcast_strides(in, out.shape()));
    }
    args.axes = strided_axes<arity>(name, out.shape(), strides);
  }
  for (int k = 0; k < arity; ++k) {
    uint64_t value[2] = {};
    if (e.host_scalar(inputs[k], value)) {
      args.immediate[k] = value[0];
      found.immediates |= 1u << k;
    } else {
      args.from[k] = e.in(inputs[k]);
    }
    if (args.axes.strides[k][args.axes.ndim - 1] == 0) {
      found.splats |= 1u << k;
    }
  }
  args.to = e.out(out);
  return found;
}

bool is_aligned(const void* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

// Whether operand k lies in row-major order like the output.
template <int arity>
bool is_dense(const StridedAxes<arity>& axes, int k) {
  int64_t expected = 1;
  for (int i = axes.ndim - 1; i >= 0; --i) {
    if (axes.strides[k][i] != expected) {
      return false;
    }
    expected *= axes.sizes[i].divisor;
  }
  return true;
}

// Whether packs of operand k begin at addresses that are multiples of a pack.
template <int arity>
bool has_packs(
    const StridedArgs<arity>& args, int k, size_t itemsize, int pack) {
  const StridedAxes<arity>& axes = args.axes;
  int last = axes.ndim - 1;
  if (axes.strides[k][last] != 1 ||
      !is_aligned(args.from[k], static_cast<size_t>(pack) * itemsize)) {
    return false;
  }
  if (last == 0 || is_dense(axes, k)) {
    return true;
  }
  bool even = axes.sizes[last].divisor % static_cast<uint32_t>(pack) == 0;
  for (int i = 0; i < last; ++i) {
    even = even && axes.strides[k][i] % pack == 0;
  }
  return even;
}

// How packs of the output are made; true if no operand needs to be located.
template <int arity>
bool plan_reads(
    Description<arity>& found,
    const std::vector<array>& inputs,
    const array& out,
    int pack) {
  StridedArgs<arity>& args = found.args;
  int last = args.axes.ndim - 1;
  auto width = static_cast<uint32_t>(pack);
  args.in_packs = is_aligned(args.to, width * out.itemsize()) &&
                  (last == 0 || args.axes.sizes[last].divisor >= width);
  bool in_order = args.in_packs && last == 0;
  for (int k = 0; k < arity; ++k) {
    bool is_splat = (found.splats >> k & 1) != 0 &&
                    (last == 0 || args.axes.sizes[last].divisor % width == 0);
    if ((found.immediates >> k & 1) != 0) {
      args.read[k] = OperandRead::number;
    } else if (is_splat) {
      args.read[k] = OperandRead::splat;
    } else if (has_packs(args, k, inputs[k].itemsize(), pack)) {
      args.read[k] = OperandRead::pack;
    } else {
      args.read[k] = OperandRead::pieces;
      args.any_pieces = true;
      in_order = false;
    }
  }
  return in_order && (arity > 1 || args.read[0] == OperandRead::pack);
}

// Notes a small operation in the encoder's list; false where the list does not
// know the types or the layout.
template <int arity>
bool note(
    ElementwiseOp op,
    const Description<arity>& found,
    const std::vector<array>& inputs,
    const array& out,
    Encoder& e) {
  const StridedArgs<arity>& args = found.args;
  bool is_known = arity == 3 ? batches(inputs[1].dtype())
                             : batches(op, inputs[0].dtype(), out.dtype());
  if (args.size > BatchEntry::most_elements || args.axes.ndim != 1 ||
      !is_known || !e.can_batch()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::elementwise;
  entry.op = op;
  entry.operands = arity;
  entry.size = static_cast<uint32_t>(args.size);
  entry.immediates = static_cast<uint8_t>(found.immediates);
  entry.splats = static_cast<uint8_t>(found.splats);
  entry.types[3] = batch_type(out.dtype());
  entry.elementwise.to = args.to;
  for (int k = 0; k < arity; ++k) {
    if (args.axes.strides[k][0] != 1 && (found.splats >> k & 1) == 0) {
      return false;
    }
    entry.types[k] = batch_type(inputs[k].dtype());
    entry.elementwise.from[k] = (found.immediates >> k & 1) != 0
                                    ? args.immediate[k]
                                    : reinterpret_cast<uint64_t>(args.from[k]);
  }
  e.batch(entry);
  return true;
}

template <typename Args>
void launch(void (*kernel)(Args), int items, const Args& args, Encoder& e) {
  size_t of_block = static_cast<size_t>(items) * kElementwiseThreads;
  size_t blocks = (args.size + of_block - 1) / of_block;
  e.launch(
      kernel,
      dim3(static_cast<unsigned>(blocks)),
      dim3(kElementwiseThreads),
      0,
      args);
}

template <int arity>
void run(
    ElementwiseOp op,
    const char* name,
    const ElementwiseKernel<arity>& kernel,
    const std::vector<array>& given,
    array& out,
    Encoder& e) {
  if (kernel.strided == nullptr) {
    throw std::runtime_error(
        message(name, "has no cuda kernel for ", given.back().dtype(), "."));
  }
  if (out.size() == 0) {
    e.allocate(out);
    return;
  }
  const array* layout = common_layout(given, out);
  std::vector<array> copies;
  const std::vector<array>* inputs = &given;
  for (const array& in : given) {
    if (!layout && copies.empty() && is_transposed(in, out.shape())) {
      copies = with_rows(given, out.shape(), e);
      inputs = &copies;
    }
  }
  prepare_output(*inputs, out, layout, e);
  auto found = describe<arity>(name, *inputs, out, layout != nullptr, e);
  if (note<arity>(op, found, *inputs, out, e)) {
    return;
  }
  const StridedArgs<arity>& args = found.args;
  if (!plan_reads(found, *inputs, out, kernel.pack)) {
    launch(kernel.strided, kernel.pack, args, e);
    return;
  }
  FlatArgs<arity> flat{};
  std::copy_n(args.from, arity, flat.from);
  std::copy_n(args.immediate, arity, flat.immediate);
  flat.to = args.to;
  flat.size = args.size;
  flat.numbers = found.splats;
  flat.immediates = found.immediates;
  launch(kernel.flat, kernel.flat_items, flat, e);
}

// The device type by which `canonical` says an operation is done.
template <typename F>
decltype(auto) visit_canonical(Canonical by, F&& f) {
  return visit_type(Dtype(by.type, 1), std::forward<F>(f));
}

}  // namespace

void elementwise(
    const Elementwise& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  const ElementwiseInfo& info = elementwise_info(op.op());
  Dtype operand = inputs.back().dtype();
  Canonical by = canonical(op.op(), operand);
  switch (info.arity) {
    case 1:
      return visit_canonical(by, [&](auto tag) {
        using T = typename decltype(tag)::type;
        run<1>(op.op(), info.name, find_unary<T>(by.op), inputs, out, e);
      });
    case 2:
      return visit_canonical(by, [&](auto tag) {
        using T = typename decltype(tag)::type;
        run<2>(op.op(), info.name, find_binary<T>(by.op), inputs, out, e);
      });
    default:
      run<3>(op.op(), info.name, find_select(operand.size()), inputs, out, e);
  }
}

void as_type(const AsType&, const array& x, array& out, Encoder& e) {
  auto kernel = find_conversion(x.dtype(), out.dtype());
  if (x.data_size() != 1) {
    run<1>(ElementwiseOp::real, "astype", kernel, {x}, out, e);
    return;
  }
  // A repeated element stays one.
  out.set_data(
      memory().buffer(out.itemsize(), e.lane()), 1, x.strides(), x.flags());
  Description<1> found;
  StridedArgs<1>& args = found.args;
  args.size = 1;
  args.axes.ndim = 1;
  found.splats = 1;
  uint64_t value[2] = {};
  if (e.host_scalar(x, value)) {
    args.immediate[0] = value[0];
    args.read[0] = OperandRead::number;
    found.immediates = 1;
  } else {
    args.from[0] = e.in(x);
    args.read[0] = OperandRead::splat;
  }
  args.to = e.out(out);
  if (note<1>(ElementwiseOp::real, found, {x}, out, e)) {
    return;
  }
  e.launch(kernel.strided, dim3(1), dim3(kElementwiseThreads), 0, args);
}

}  // namespace mlx::core::cuda
