// The node behind custom_function: it passes values through and holds the
// rules that the user gave.
#pragma once

#include <functional>
#include <optional>

#include "mlx/transforms.h"
#include "ops/structured.h"

namespace mlx::core {

using VjpFn = std::function<std::vector<array>(
    const std::vector<array>&,
    const std::vector<array>&,
    const std::vector<array>&)>;
using JvpFn = std::function<std::vector<array>(
    const std::vector<array>&,
    const std::vector<array>&,
    const std::vector<int>&)>;
using VmapFn = std::function<std::pair<std::vector<array>, std::vector<int>>(
    const std::vector<array>&, const std::vector<int>&)>;

/// The inputs are the arguments, then the function's outputs.
class CustomTransforms final : public Structured<CustomTransforms> {
 public:
  CustomTransforms(
      Stream s,
      int num_outputs,
      ArrayFn fun,
      std::optional<VjpFn> vjp,
      std::optional<JvpFn> jvp,
      std::optional<VmapFn> vmap)
      : Structured(s),
        num_outputs_(num_outputs),
        fun_(std::move(fun)),
        vjp_(std::move(vjp)),
        jvp_(std::move(jvp)),
        vmap_(std::move(vmap)) {}
  static constexpr const char* kName = "CustomTransforms";

  int num_outputs() const { return num_outputs_; }

  bool is_equivalent(const Primitive& other) const override {
    return this == &other;
  }
  std::vector<array> jvp(
      const std::vector<array>& primals,
      const std::vector<array>& tangents,
      const std::vector<int>& argnums) override;
  std::vector<array> vjp(
      const std::vector<array>& primals,
      const std::vector<array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  // The outputs are the last inputs, on any device: there is no kernel.
  void eval_cpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override {
    pass_through(inputs, outputs);
  }
  void eval_gpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override {
    pass_through(inputs, outputs);
  }

 private:
  std::vector<array> arguments(const std::vector<array>& inputs) const;
  static void pass_through(
      const std::vector<array>& inputs, std::vector<array>& outputs);

  int num_outputs_;
  ArrayFn fun_;
  std::optional<VjpFn> vjp_;
  std::optional<JvpFn> jvp_;
  std::optional<VmapFn> vmap_;
};

}  // namespace mlx::core
