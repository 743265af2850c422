// Compiling and launching kernels that the user has written.
#include "backend/cuda/custom_kernel.h"

#include <algorithm>
#include <deque>
#include <iostream>

#include "backend/cuda/copy.h"
#include "backend/cuda/custom_kernel_text.h"
#include "backend/cuda/jit.h"
#include "backend/cuda/jit_types.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

// What a kernel may take without being asked for.
constexpr int kOrdinarySharedMemory = 48 << 10;

// The values of a kernel's arguments and where they are.
class Arguments {
 public:
  template <typename T>
  void add(const T& value) {
    static_assert(sizeof(T) <= sizeof(Value) && alignof(T) <= alignof(Value));
    Value& kept = values_.emplace_back();
    std::memcpy(&kept, &value, sizeof(T));
    addresses_.push_back(&kept);
  }
  void** addresses() { return addresses_.data(); }

 private:
  struct alignas(8) Value {
    char bytes[sizeof(jit::KernelStrides)];
  };
  std::deque<Value> values_;  // stay where they are
  std::vector<void*> addresses_;
};

std::vector<array> prepared(
    const std::vector<array>& inputs, bool row_major, Encoder& e) {
  std::vector<array> ready;
  for (const array& in : inputs) {
    ready.push_back(row_major ? row_contiguous(in, e) : in);
  }
  return ready;
}

void prepare(
    std::vector<array>& outputs,
    const std::optional<float>& init_value,
    Encoder& e) {
  for (array& out : outputs) {
    e.allocate(out);
    if (init_value && out.size() > 0) {
      array value(*init_value, out.dtype());
      copy_strided(
          e.in(value),
          Strides(out.ndim(), 0),
          e.out(out),
          out.strides(),
          out.shape(),
          out.itemsize(),
          e);
    }
  }
}

// Blocks are no larger than the grid; the last one along an axis may be left
// with threads beyond it.
void launch(
    cudaKernel_t kernel,
    const fast::LaunchSize& size,
    int shared,
    Arguments& arguments,
    Encoder& e) {
  unsigned blocks[3];
  unsigned threads[3];
  for (int i = 0; i < 3; ++i) {
    int block = std::max(1, std::min(size.threadgroup[i], size.grid[i]));
    threads[i] = static_cast<unsigned>(block);
    blocks[i] = static_cast<unsigned>(
        (static_cast<int64_t>(size.grid[i]) + block - 1) / block);
  }
  if (shared > kOrdinarySharedMemory) {
    check(
        cudaFuncSetAttribute(
            reinterpret_cast<const void*>(kernel),
            cudaFuncAttributeMaxDynamicSharedMemorySize,
            shared),
        "asking for shared memory");
  }
  jit::launch(
      kernel,
      dim3(blocks[0], blocks[1], blocks[2]),
      dim3(threads[0], threads[1], threads[2]),
      static_cast<size_t>(shared),
      arguments.addresses(),
      e);
}

cudaKernel_t find_kernel(
    const fast::CustomKernelParams& params,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs) {
  const fast::KernelSource& source = *params.source;
  std::string key = signature(params, inputs, outputs);
  std::lock_guard lock(source.made->mutex);
  const void*& kernel = source.made->kernels[key];
  if (kernel == nullptr || params.verbose) {
    std::string text = kernel_text(params, inputs, outputs);
    if (params.verbose) {
      std::cout << "Program of " << source.name << ":\n" << text << std::flush;
    }
    kernel = jit::function(text, kernel_name(source));
  }
  return static_cast<cudaKernel_t>(const_cast<void*>(kernel));
}

void add_input(
    const fast::KernelSource& source,
    const std::string& name,
    const array& in,
    Arguments& arguments,
    Encoder& e) {
  arguments.add(e.in(in));
  InputFacts facts = facts_named(source, name);
  int ndim = static_cast<int>(in.ndim());
  if ((facts.shape || facts.strides) && ndim > jit::kMostAxes) {
    throw std::invalid_argument(message(
        "cuda_kernel",
        source.name,
        " asks for the shape or strides of ",
        name,
        ", which has ",
        ndim,
        " axes. Expected at most ",
        jit::kMostAxes,
        "."));
  }
  if (facts.shape) {
    jit::KernelShape shape{};
    std::copy(in.shape().begin(), in.shape().end(), shape.values);
    arguments.add(shape);
  }
  if (facts.strides) {
    jit::KernelStrides strides{};
    std::copy(in.strides().begin(), in.strides().end(), strides.values);
    arguments.add(strides);
  }
  if (facts.ndim) {
    arguments.add(ndim);
  }
}

}  // namespace

void custom_kernel(
    const fast::CustomKernel& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e) {
  const fast::CustomKernelParams& params = op.params();
  const fast::KernelSource& source = *params.source;
  cudaKernel_t kernel = find_kernel(params, inputs, outputs);
  std::vector<array> ready = prepared(inputs, source.ensure_row_contiguous, e);
  prepare(outputs, params.init_value, e);
  Arguments arguments;
  for (size_t i = 0; i < ready.size(); ++i) {
    add_input(source, source.input_names[i], ready[i], arguments, e);
  }
  for (array& out : outputs) {
    arguments.add(e.out(out));
  }
  launch(kernel, params.size, source.shared_memory, arguments, e);
}

void precompiled_kernel(
    const fast::PrecompiledKernel& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e) {
  const fast::PrecompiledKernelParams& params = op.params();
  cudaKernel_t kernel = jit::precompiled_function(params.program, params.name);
  std::vector<array> ready = prepared(inputs, params.ensure_row_contiguous, e);
  prepare(outputs, params.init_value, e);
  Arguments arguments;
  for (const array& in : ready) {
    arguments.add(e.in(in));
  }
  for (array& out : outputs) {
    arguments.add(e.out(out));
  }
  for (const fast::ScalarArg& scalar : params.scalars) {
    std::visit([&](auto value) { arguments.add(value); }, scalar);
  }
  launch(kernel, params.size, params.shared_memory, arguments, e);
}

}  // namespace mlx::core::cuda
