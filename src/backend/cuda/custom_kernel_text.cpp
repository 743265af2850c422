// No header of CUDA here, so that the tests need none.
#include "backend/cuda/custom_kernel_text.h"

#include <cctype>

#include "backend/cuda/jit_types.h"

namespace mlx::core::cuda {

namespace {

template <typename... F>
struct Either : F... {
  using F::operator()...;
};

// Seen by the body alone, under the argument's name.
std::string declaration(
    const std::string& name, const fast::TemplateArg& value) {
  return std::visit(
      Either{
          [&](int number) {
            return "constexpr int " + name + " = " + std::to_string(number) +
                   ";";
          },
          [&](bool yes) {
            return "constexpr bool " + name + " = " +
                   (yes ? "true;" : "false;");
          },
          [&](Dtype type) {
            return "using " + name + " = " + jit::type_name(type) + ";";
          }},
      value);
}

}  // namespace

InputFacts facts_named(
    const fast::KernelSource& source, const std::string& input) {
  auto named = [&](const char* what) {
    return source.source.find(input + what) != std::string::npos;
  };
  return {named("_shape"), named("_strides"), named("_ndim")};
}

std::string signature(
    const fast::CustomKernelParams& params,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs) {
  std::string text;
  for (const auto* arrays : {&inputs, &outputs}) {
    for (const array& a : *arrays) {
      text += jit::type_name(a.dtype());
      text += ' ';
    }
  }
  for (const auto& [name, value] : params.template_args) {
    text += declaration(name, value);
  }
  return text;
}

std::string kernel_name(const fast::KernelSource& source) {
  std::string name = "custom_kernel_" + source.name;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}

std::string kernel_text(
    const fast::CustomKernelParams& params,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs) {
  const fast::KernelSource& source = *params.source;
  std::vector<std::string> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = source.input_names[i];
    std::string type = jit::type_name(inputs[i].dtype());
    arguments.push_back("const " + type + "* " + name);
    InputFacts facts = facts_named(source, name);
    if (facts.shape) {
      arguments.push_back(
          "const __grid_constant__ KernelShape " + name + "_shape");
    }
    if (facts.strides) {
      arguments.push_back(
          "const __grid_constant__ KernelStrides " + name + "_strides");
    }
    if (facts.ndim) {
      arguments.push_back("const int " + name + "_ndim");
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string type = jit::type_name(outputs[i].dtype());
    arguments.push_back(type + "* " + source.output_names[i]);
  }
  std::string text = jit::prelude(source.header + source.source);
  text += source.header;
  text += "\nextern \"C\" __global__ void " + kernel_name(source) + "(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + arguments[i];
  }
  text += ") {\n";
  for (const auto& [name, value] : params.template_args) {
    text += "  " + declaration(name, value) + "\n";
  }
  text += source.source;
  text += "\n}\n";
  return text;
}

}  // namespace mlx::core::cuda
