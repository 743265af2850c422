// Operations whose kernel the user has written.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx/fast.h"
#include "ops/structured.h"

namespace mlx::core::fast {

/// What cuda_kernel() was given: all calls of its function share it.
struct KernelSource {
  std::string name;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::string source;
  std::string header;
  bool ensure_row_contiguous;
  int shared_memory;

  /// What a backend has made of it, by the types of a call: kernels, which
  /// live as long as the process.
  struct Made {
    std::mutex mutex;
    std::unordered_map<std::string, const void*> kernels;
  };
  std::unique_ptr<Made> made = std::make_unique<Made>();

  bool operator==(const KernelSource& other) const;
};

/// In threads.
struct LaunchSize {
  int grid[3];
  int threadgroup[3];
  bool operator==(const LaunchSize&) const = default;
};

struct CustomKernelParams {
  std::shared_ptr<const KernelSource> source;
  std::vector<std::pair<std::string, TemplateArg>> template_args;
  LaunchSize size;
  std::optional<float> init_value;
  bool verbose;
  bool operator==(const CustomKernelParams& other) const;
};

class CustomKernel final : public Structured<CustomKernel, CustomKernelParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "CustomKernel";
};

struct PrecompiledKernelParams {
  std::string name;
  std::string program;
  std::vector<ScalarArg> scalars;
  LaunchSize size;
  int shared_memory;
  std::optional<float> init_value;
  bool ensure_row_contiguous;
  bool operator==(const PrecompiledKernelParams&) const = default;
};

class PrecompiledKernel final
    : public Structured<PrecompiledKernel, PrecompiledKernelParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "PrecompiledKernel";
};

}  // namespace mlx::core::fast
