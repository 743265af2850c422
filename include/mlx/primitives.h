// Primitive: an operation as a node of the graph knows it. Extensions derive
// from Primitive or UnaryPrimitive; the built-in classes that programs may
// name are in ops/ beside the functions that make them.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "mlx/array.h"
#include "mlx/device.h"
#include "mlx/stream.h"

// Declarations of overrides, for classes derived from Primitive.
#define DEFINE_VMAP()                                                \
  std::pair<std::vector<::mlx::core::array>, std::vector<int>> vmap( \
      const std::vector<::mlx::core::array>& inputs,                 \
      const std::vector<int>& axes) override;

#define DEFINE_GRADS()                                   \
  std::vector<::mlx::core::array> jvp(                   \
      const std::vector<::mlx::core::array>& primals,    \
      const std::vector<::mlx::core::array>& tangents,   \
      const std::vector<int>& argnums) override;         \
  std::vector<::mlx::core::array> vjp(                   \
      const std::vector<::mlx::core::array>& primals,    \
      const std::vector<::mlx::core::array>& cotangents, \
      const std::vector<int>& argnums,                   \
      const std::vector<::mlx::core::array>& outputs) override;

#define DEFINE_NAME(PRIMITIVE)        \
  const char* name() const override { \
    return #PRIMITIVE;                \
  }

// The level of 0.26 prints instead of naming.
#define DEFINE_PRINT(PRIMITIVE)           \
  void print(std::ostream& os) override { \
    os << #PRIMITIVE;                     \
  }

#define DEFINE_DEFAULT_IS_EQUIVALENT()                                     \
  bool is_equivalent(const ::mlx::core::Primitive& other) const override { \
    (void)other;                                                           \
    return true;                                                           \
  }

#define DEFINE_INPUT_OUTPUT_SHAPE()                             \
  std::vector<::mlx::core::Shape> output_shapes(                \
      const std::vector<::mlx::core::array>& inputs) override { \
    return {inputs[0].shape()};                                 \
  }

namespace mlx::core {

class MLX_API Primitive {
 public:
  explicit Primitive(Stream stream) : stream_(stream) {}

  const Device& device() { return stream().device; }
  const Stream& stream() { return stream_; }

  /// Computes the outputs: gives each data (array::set_data), then fills it,
  /// at once or by the stream's encoder. The inputs have data.
  virtual void eval_cpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) = 0;
  virtual void eval_gpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) = 0;

  /// The outputs' tangents; `tangents[i]` belongs to `primals[argnums[i]]`.
  virtual std::vector<array> jvp(
      const std::vector<array>& primals,
      const std::vector<array>& tangents,
      const std::vector<int>& argnums);

  /// The cotangents of `primals[argnums[i]]` from those of the outputs.
  virtual std::vector<array> vjp(
      const std::vector<array>& primals,
      const std::vector<array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<array>& outputs);

  /// The operation over a batch; `axes[i]` is the batch axis of input i or
  /// -1. Returns the outputs and their batch axes.
  virtual std::pair<std::vector<array>, std::vector<int>> vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes);

  /// A fixed word. Defaults to what print() writes.
  virtual const char* name() const;
  virtual void print(std::ostream& os);

  /// Whether `other`, of the same class, does the same with equal inputs.
  virtual bool is_equivalent(const Primitive& other) const;

  /// The outputs' shapes for inputs of other shapes (shapeless compile).
  virtual std::vector<Shape> output_shapes(const std::vector<array>& inputs);

  virtual ~Primitive() = default;
  Primitive(const Primitive& other) = delete;
  Primitive(Primitive&& other) = delete;
  Primitive& operator=(const Primitive& other) = delete;
  Primitive& operator=(Primitive&& other) = delete;

 private:
  Stream stream_;
};

/// A primitive with one output.
class MLX_API UnaryPrimitive : public Primitive {
 public:
  explicit UnaryPrimitive(Stream stream) : Primitive(stream) {}

  virtual void eval_cpu(const std::vector<array>& inputs, array& output) = 0;
  virtual void eval_gpu(const std::vector<array>& inputs, array& output) = 0;

  inline void eval_cpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override {
    eval_cpu(inputs, outputs[0]);
  }
  inline void eval_gpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override {
    eval_gpu(inputs, outputs[0]);
  }

  virtual ~UnaryPrimitive() = default;
  UnaryPrimitive(const UnaryPrimitive& other) = delete;
  UnaryPrimitive(UnaryPrimitive&& other) = delete;
  UnaryPrimitive& operator=(const UnaryPrimitive& other) = delete;
  UnaryPrimitive& operator=(UnaryPrimitive&& other) = delete;
};

}  // namespace mlx::core
