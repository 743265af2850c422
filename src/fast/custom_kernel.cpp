// Checks of what custom kernels are given, and their nodes.
#include "fast/custom_kernel.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "backend/backend.h"
#include "types/error.h"

namespace mlx::core::fast {

namespace {

using Dims = std::tuple<int, int, int>;

// What CUDA allows of any device.
constexpr int kMostThreads = 1024;
constexpr int kMostThreadsDeep = 64;
constexpr int kMostBlocks = 65535;  // along the second and third axis

bool is_identifier(const std::string& name) {
  auto fits = [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits) &&
         !std::isdigit(static_cast<unsigned char>(name[0]));
}

void check_names(const KernelSource& given) {
  std::vector<std::string> all = given.input_names;
  all.insert(all.end(), given.output_names.begin(), given.output_names.end());
  for (const std::string& name : all) {
    if (!is_identifier(name)) {
      invalid(
          "cuda_kernel",
          "not the name of an argument: \"",
          name,
          "\". Expected letters, digits and underscores.");
    }
    if (std::count(all.begin(), all.end(), name) > 1) {
      invalid(
          "cuda_kernel",
          "two arguments have the name ",
          name,
          ". Expected different ones.");
    }
  }
  if (given.name.empty() || given.output_names.empty()) {
    invalid("cuda_kernel", "a kernel needs a name and at least one output.");
  }
  if (given.shared_memory < 0) {
    invalid(
        "cuda_kernel",
        "negative shared memory: ",
        given.shared_memory,
        ". Expected bytes.");
  }
}

void check_count(
    const char* op, const char* what, size_t given, size_t expected) {
  if (given != expected) {
    invalid(op, given, " ", what, " were given. Expected ", expected, ".");
  }
}

LaunchSize checked_size(const char* op, Dims grid, Dims threadgroup) {
  auto [gx, gy, gz] = grid;
  auto [tx, ty, tz] = threadgroup;
  LaunchSize size{{gx, gy, gz}, {tx, ty, tz}};
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    threads *= std::clamp(size.threadgroup[i], 0, kMostThreads + 1);
    if (size.grid[i] < 0 || size.threadgroup[i] < 1) {
      invalid(
          op,
          "the grid (",
          gx,
          ", ",
          gy,
          ", ",
          gz,
          ") in blocks of (",
          tx,
          ", ",
          ty,
          ", ",
          tz,
          ") threads. Expected numbers above zero.");
    }
  }
  if (threads > kMostThreads || tz > kMostThreadsDeep) {
    invalid(
        op,
        "a block of (",
        tx,
        ", ",
        ty,
        ", ",
        tz,
        ") threads. Expected at most ",
        kMostThreads,
        ", at most ",
        kMostThreadsDeep,
        " of them along the third axis.");
  }
  if (gy / ty >= kMostBlocks || gz / tz >= kMostBlocks) {
    invalid(
        op,
        "the grid (",
        gx,
        ", ",
        gy,
        ", ",
        gz,
        ") has more than ",
        kMostBlocks,
        " blocks along its second or third axis. Expected the long axis "
        "first.");
  }
  return size;
}

void check_outputs(
    const char* op,
    const std::vector<Shape>& shapes,
    const std::vector<Dtype>& dtypes) {
  check_count(op, "output types", dtypes.size(), shapes.size());
  for (const Shape& shape : shapes) {
    if (std::any_of(shape.begin(), shape.end(), [](int n) { return n < 0; })) {
      invalid(
          op, "an output of shape ", shape, ". Expected no negative lengths.");
    }
  }
}

Stream gpu_stream(const char* op, const std::string& name, StreamOrDevice s) {
  if (find_backend(Device::gpu) == nullptr) {
    throw std::runtime_error(message(
        op,
        name,
        " cannot run: there is no usable NVIDIA GPU. Ask "
        "mx.cuda.is_available() first, and use ordinary operations without "
        "one."));
  }
  Stream stream = to_stream(s);
  if (stream.device != Device::gpu) {
    throw std::runtime_error(message(
        op,
        name,
        " cannot run on the cpu. Expected a stream of the gpu, "
        "stream=mx.gpu."));
  }
  return stream;
}

template <typename Op, typename Params>
std::vector<array> make_nodes(
    const std::vector<Shape>& shapes,
    const std::vector<Dtype>& dtypes,
    const std::vector<array>& inputs,
    Stream stream,
    Params params) {
  return array::make_arrays(
      shapes, dtypes, std::make_shared<Op>(stream, std::move(params)), inputs);
}

}  // namespace

bool KernelSource::operator==(const KernelSource& other) const {
  return name == other.name && input_names == other.input_names &&
         output_names == other.output_names && source == other.source &&
         header == other.header &&
         ensure_row_contiguous == other.ensure_row_contiguous &&
         shared_memory == other.shared_memory;
}

bool CustomKernelParams::operator==(const CustomKernelParams& other) const {
  return (source == other.source || *source == *other.source) &&
         template_args == other.template_args && size == other.size &&
         init_value == other.init_value && verbose == other.verbose;
}

CustomKernelFunction metal_kernel(
    const std::string& name,
    const std::vector<std::string>&,
    const std::vector<std::string>&,
    const std::string&,
    const std::string&,
    bool,
    bool,
    const CompileOptions&) {
  throw std::runtime_error(message(
      "metal_kernel",
      name,
      " needs Metal, which only Apple's systems have. Write the kernel in "
      "CUDA C++ for fast.cuda_kernel, or use ordinary operations."));
}

CustomKernelFunction cuda_kernel(
    const std::string& name,
    const std::vector<std::string>& input_names,
    const std::vector<std::string>& output_names,
    const std::string& source,
    const std::string& header,
    bool ensure_row_contiguous,
    int shared_memory) {
  auto given = std::make_shared<const KernelSource>(KernelSource{
      name,
      input_names,
      output_names,
      source,
      header,
      ensure_row_contiguous,
      shared_memory});
  check_names(*given);
  return [given](
             const std::vector<array>& inputs,
             const std::vector<Shape>& output_shapes,
             const std::vector<Dtype>& output_dtypes,
             Dims grid,
             Dims threadgroup,
             std::vector<std::pair<std::string, TemplateArg>> template_args,
             std::optional<float> init_value,
             bool verbose,
             StreamOrDevice s) {
    constexpr const char* op = "cuda_kernel";
    check_count(op, "inputs", inputs.size(), given->input_names.size());
    check_count(
        op, "output shapes", output_shapes.size(), given->output_names.size());
    check_outputs(op, output_shapes, output_dtypes);
    for (const auto& [name, value] : template_args) {
      if (!is_identifier(name)) {
        invalid(
            op,
            "not the name of a template argument: \"",
            name,
            "\". Expected letters, digits and underscores.");
      }
    }
    LaunchSize size = checked_size(op, grid, threadgroup);
    Stream stream = gpu_stream(op, given->name, s);
    return make_nodes<CustomKernel>(
        output_shapes,
        output_dtypes,
        inputs,
        stream,
        CustomKernelParams{
            given, std::move(template_args), size, init_value, verbose});
  };
}

std::vector<array> precompiled_cuda_kernel(
    const std::string& name,
    const std::string& compiled_source,
    const std::vector<array>& inputs,
    const std::vector<Shape>& output_shapes,
    const std::vector<Dtype>& output_dtypes,
    const std::vector<ScalarArg>& scalars,
    std::tuple<int, int, int> grid,
    std::tuple<int, int, int> threadgroup,
    int shared_memory,
    std::optional<float> init_value,
    bool ensure_row_contiguous,
    StreamOrDevice s) {
  constexpr const char* op = "precompiled_cuda_kernel";
  check_outputs(op, output_shapes, output_dtypes);
  LaunchSize size = checked_size(op, grid, threadgroup);
  if (output_shapes.empty() || shared_memory < 0) {
    invalid(op, "a kernel needs an output, and shared memory in bytes.");
  }
  Stream stream = gpu_stream(op, name, s);
  return make_nodes<PrecompiledKernel>(
      output_shapes,
      output_dtypes,
      inputs,
      stream,
      PrecompiledKernelParams{
          name,
          compiled_source,
          scalars,
          size,
          shared_memory,
          init_value,
          ensure_row_contiguous});
}

}  // namespace mlx::core::fast
