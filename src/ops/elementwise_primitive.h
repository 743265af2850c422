// The primitive of all elementwise operations: which one it is, is data.
#pragma once

#include "ops/elementwise_op.h"
#include "ops/structured.h"

namespace mlx::core {

/// Inputs have one operand type (the condition of select aside) and shapes
/// that broadcast to the output's shape.
class Elementwise final : public Structured<Elementwise, ElementwiseOp> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Elementwise";

  ElementwiseOp op() const { return params(); }
  const char* name() const override {
    return elementwise_info(op()).class_name;
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
};

/// A node for one row of the table, operands promoted and cast.
array elementwise(ElementwiseOp op, const array& a, Stream s);
array elementwise(ElementwiseOp op, const array& a, const array& b, Stream s);

/// The derivative of operand `argnum` as its row states it: for jvp applied to
/// its tangent, for vjp to the result's cotangent.
array elementwise_tangent(
    ElementwiseOp op,
    int argnum,
    bool reverse,
    const array& t,
    const std::vector<array>& inputs,
    const array& y);

}  // namespace mlx::core
