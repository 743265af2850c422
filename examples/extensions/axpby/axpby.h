// alpha * x + beta * y, as ordinary operations and as an operation of its own.
#pragma once

#include <utility>
#include <vector>

#include "mlx/ops.h"
#include "mlx/primitives.h"

namespace mx = mlx::core;

namespace my_ext {

/// alpha * x + beta * y from operations that are there: three passes over
/// memory, all transforms for free.
mx::array simple_axpby(
    const mx::array& x,
    const mx::array& y,
    const float alpha,
    const float beta,
    mx::StreamOrDevice s = {});

/// The same in one pass. x and y are broadcast to a common shape and promoted
/// to a common type, float32 where that is no floating one.
mx::array axpby(
    const mx::array& x,
    const mx::array& y,
    const float alpha,
    const float beta,
    mx::StreamOrDevice s = {});

/// The node of the graph behind axpby(): how to compute it on each device and
/// what the transforms make of it. Its inputs have one shape and one type.
class Axpby : public mx::Primitive {
 public:
  explicit Axpby(mx::Stream stream, float alpha, float beta)
      : mx::Primitive(stream), alpha_(alpha), beta_(beta) {}

  /// These give the output memory, then fill it.
  void eval_cpu(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs) override;
  void eval_gpu(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs) override;

  /// The tangent of the output.
  std::vector<mx::array> jvp(
      const std::vector<mx::array>& primals,
      const std::vector<mx::array>& tangents,
      const std::vector<int>& argnums) override;

  /// The cotangents of the inputs.
  std::vector<mx::array> vjp(
      const std::vector<mx::array>& primals,
      const std::vector<mx::array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<mx::array>& outputs) override;

  /// The operation over a batch, and the axis of the output's batch.
  std::pair<std::vector<mx::array>, std::vector<int>> vmap(
      const std::vector<mx::array>& inputs,
      const std::vector<int>& axes) override;

  /// Sources of MLX 0.26 have `void print(std::ostream& os)` in its place;
  /// either will do.
  const char* name() const override { return "Axpby"; }

  /// Lets compile() keep one of two nodes with the same inputs.
  bool is_equivalent(const mx::Primitive& other) const override;

  /// For compile(shapeless=True).
  std::vector<mx::Shape> output_shapes(
      const std::vector<mx::array>& inputs) override;

 private:
  float alpha_;
  float beta_;
};

}  // namespace my_ext
