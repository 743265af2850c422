// The program around the body of a custom kernel.
#pragma once

#include <string>
#include <vector>

#include "fast/custom_kernel.h"

namespace mlx::core::cuda {

/// Which facts of an input its kernel takes beside the address.
struct InputFacts {
  bool shape;
  bool strides;
  bool ndim;
};
InputFacts facts_named(
    const fast::KernelSource& source, const std::string& input);

/// What the text depends on beside the source: types and template arguments.
std::string signature(
    const fast::CustomKernelParams& params,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs);

std::string kernel_name(const fast::KernelSource& source);
std::string kernel_text(
    const fast::CustomKernelParams& params,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs);

}  // namespace mlx::core::cuda
