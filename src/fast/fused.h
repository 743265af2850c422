// The base of fused operations: transforms go through the composed fallback.
#pragma once

#include <utility>

#include "mlx/transforms.h"
#include "ops/structured.h"

namespace mlx::core::fast {

/// `fallback` computes the same outputs from the same inputs with ordinary
/// operations.
template <typename Op, typename Params>
class Fused : public Structured<Op, Params> {
 public:
  Fused(Stream s, Params params, ArrayFn fallback)
      : Structured<Op, Params>(s, std::move(params)),
        fallback_(std::move(fallback)) {}

  const ArrayFn& fallback() const { return fallback_; }

  std::vector<array> jvp(
      const std::vector<array>& primals,
      const std::vector<array>& tangents,
      const std::vector<int>& argnums) override {
    auto [some, all] = split_primals(primals, argnums);
    return mlx::core::jvp(all, some, tangents).second;
  }

  std::vector<array> vjp(
      const std::vector<array>& primals,
      const std::vector<array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<array>&) override {
    auto [some, all] = split_primals(primals, argnums);
    return mlx::core::vjp(all, some, cotangents).second;
  }

  std::pair<std::vector<array>, std::vector<int>> vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override {
    std::vector<array> outputs = mlx::core::vmap(fallback_, axes)(inputs);
    std::vector<int> out_axes(outputs.size(), 0);
    return {std::move(outputs), std::move(out_axes)};
  }

  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }

 private:
  // The primals that are differentiated, and the fallback as a function of
  // them alone.
  std::pair<std::vector<array>, ArrayFn> split_primals(
      const std::vector<array>& primals, const std::vector<int>& argnums) {
    std::vector<array> some;
    for (int argnum : argnums) {
      some.push_back(primals[argnum]);
    }
    ArrayFn all = [this, primals, argnums](const std::vector<array>& given) {
      std::vector<array> inputs = primals;
      for (size_t i = 0; i < argnums.size(); ++i) {
        inputs[argnums[i]] = given[i];
      }
      return fallback_(inputs);
    };
    return {std::move(some), std::move(all)};
  }

  ArrayFn fallback_;
};

}  // namespace mlx::core::fast
