// A fused part of a graph: many elementwise operations, casts and reductions
// along the last axis as one operation. What it does is data, a program of
// steps, which backends run without reading intermediate values from memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mlx/primitives.h"
#include "ops/elementwise_op.h"
#include "ops/reduce_type.h"

namespace mlx::core {

/// How many values there are of something: one for the whole array, one for
/// each row (all axes but the last), or one for each element.
enum class Extent : uint8_t { one, row, element };

/// One operation. Values are counted: the inputs first, then the steps'
/// results.
struct FusedStep {
  enum class Kind : uint8_t {
    /// `op` of the operands, which have the types of elementwise_operand_dtype.
    elementwise,
    /// The operand converted to `dtype`.
    cast,
    /// The operand, one for each element, combined along the row. `dtype` is
    /// that of the result; the elements are combined in reduce_accumulator.
    reduce
  };

  Kind kind;
  ElementwiseOp op{};
  ReduceType reduce{};
  Extent extent = Extent::element;
  uint8_t arity = 1;
  std::array<int, 3> operands{};
  Dtype dtype = float32;

  bool operator==(const FusedStep& o) const {
    return kind == o.kind && op == o.op && reduce == o.reduce &&
           extent == o.extent && arity == o.arity && operands == o.operands &&
           dtype == o.dtype;
  }
};

/// What is computed for each element of the iteration shape, the shape to which
/// all inputs broadcast. Results of each step are rounded to its type, so that
/// a program gives the bits that its steps would give one by one (reductions
/// aside, which may add in another order).
struct FusedProgram {
  struct Input {
    Dtype dtype = float32;
    /// As the steps count on; an input may have fewer values than that.
    Extent extent = Extent::element;
    bool operator==(const Input& o) const {
      return dtype == o.dtype && extent == o.extent;
    }
  };

  std::vector<Input> inputs;
  std::vector<FusedStep> steps;
  /// Which values come out, steps' results always; each once.
  std::vector<int> outputs;

  int num_inputs() const { return static_cast<int>(inputs.size()); }
  const FusedStep& step_of(int value) const {
    return steps[value - num_inputs()];
  }
  bool is_input(int value) const { return value < num_inputs(); }
  Dtype dtype(int value) const {
    return is_input(value) ? inputs[value].dtype : step_of(value).dtype;
  }
  Extent extent(int value) const {
    return is_input(value) ? inputs[value].extent : step_of(value).extent;
  }
  bool has_reductions() const;
  bool operator==(const FusedProgram&) const = default;
};

/// What a backend prepared for a program, kept with it.
struct FusedPlan {
  virtual ~FusedPlan() = default;
};

class Compiled final : public Primitive {
 public:
  Compiled(Stream s, FusedProgram program);

  const FusedProgram& program() const { return program_; }
  /// The shape to which all inputs broadcast.
  static Shape iteration_shape(const std::vector<array>& inputs);

  /// Whether each result that has a value for each element, and each operand of
  /// a reduction, has the iteration shape. A part whose shapes were not final
  /// when it was made may be given inputs with which it has not.
  bool suits(const std::vector<array>& inputs) const;

  /// The plan of a backend of the device type `type`, null before set_plan.
  /// Safe from several threads: the first one set stays, and is returned.
  std::shared_ptr<const FusedPlan> plan(Device::DeviceType type) const;
  std::shared_ptr<const FusedPlan> set_plan(
      Device::DeviceType type, std::shared_ptr<const FusedPlan> plan) const;

  void eval_cpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override;
  void eval_gpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override;

  /// "Compiled" and the classes of the steps, e.g. CompiledExpAdd.
  const char* name() const override { return name_; }
  bool is_equivalent(const Primitive& other) const override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;

 private:
  /// By value.
  std::vector<Shape> value_shapes(const std::vector<array>& inputs) const;

  FusedProgram program_;
  const char* name_;
  mutable std::shared_ptr<const FusedPlan> plans_[2];
};

}  // namespace mlx::core
