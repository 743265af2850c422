// The primitive of fused parts.
#include "ops/compiled.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "backend/backend.h"
#include "mlx/utils.h"

namespace mlx::core {

namespace {

const char* step_name(const FusedStep& step) {
  switch (step.kind) {
    case FusedStep::Kind::elementwise:
      return elementwise_info(step.op).class_name;
    case FusedStep::Kind::cast:
      return "AsType";
    default:
      break;
  }
  static constexpr const char* kNames[] = {
      "All", "Any", "Sum", "Prod", "Min", "Max"};
  return kNames[static_cast<int>(step.reduce)];
}

// Names outlive their primitives: errors that are found later still say them.
const char* interned(std::string name) {
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return names->insert(std::move(name)).first->c_str();
}

}  // namespace

bool FusedProgram::has_reductions() const {
  return std::any_of(steps.begin(), steps.end(), [](const FusedStep& step) {
    return step.kind == FusedStep::Kind::reduce;
  });
}

Compiled::Compiled(Stream s, FusedProgram program)
    : Primitive(s), program_(std::move(program)) {
  std::string name = "Compiled";
  for (const FusedStep& step : program_.steps) {
    name += step_name(step);
  }
  name_ = interned(std::move(name));
}

Shape Compiled::iteration_shape(const std::vector<array>& inputs) {
  Shape shape;
  for (const array& in : inputs) {
    if (in.shape() != shape) {
      shape = broadcast_shapes(shape, in.shape());
    }
  }
  return shape;
}

std::shared_ptr<const FusedPlan> Compiled::plan(Device::DeviceType type) const {
  return std::atomic_load_explicit(
      &plans_[type == Device::gpu ? 1 : 0], std::memory_order_acquire);
}

std::shared_ptr<const FusedPlan> Compiled::set_plan(
    Device::DeviceType type, std::shared_ptr<const FusedPlan> plan) const {
  std::shared_ptr<const FusedPlan> before;
  auto* place = &plans_[type == Device::gpu ? 1 : 0];
  return std::atomic_compare_exchange_strong(place, &before, plan) ? plan
                                                                   : before;
}

void Compiled::eval_cpu(
    const std::vector<array>& inputs, std::vector<array>& outputs) {
  get_backend(Device::cpu).run_kernel(*this, inputs, outputs);
}

void Compiled::eval_gpu(
    const std::vector<array>& inputs, std::vector<array>& outputs) {
  get_backend(Device::gpu).run_kernel(*this, inputs, outputs);
}

bool Compiled::is_equivalent(const Primitive& other) const {
  return typeid(other) == typeid(*this) &&
         static_cast<const Compiled&>(other).program_ == program_;
}

// Each value has the shape that its own inputs broadcast to.
std::vector<Shape> Compiled::value_shapes(
    const std::vector<array>& inputs) const {
  std::vector<Shape> shapes;
  shapes.reserve(inputs.size() + program_.steps.size());
  for (const array& in : inputs) {
    shapes.push_back(in.shape());
  }
  for (const FusedStep& step : program_.steps) {
    Shape shape = shapes[step.operands[0]];
    for (int k = 1; k < step.arity; ++k) {
      const Shape& other = shapes[step.operands[k]];
      shape = shape == other ? shape : broadcast_shapes(shape, other);
    }
    if (step.kind == FusedStep::Kind::reduce && !shape.empty()) {
      shape.back() = 1;
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

bool Compiled::suits(const std::vector<array>& inputs) const {
  Shape whole = iteration_shape(inputs);
  std::vector<Shape> shapes = value_shapes(inputs);
  for (int value : program_.outputs) {
    if (program_.extent(value) == Extent::element && shapes[value] != whole) {
      return false;
    }
  }
  return std::all_of(
      program_.steps.begin(), program_.steps.end(), [&](const FusedStep& step) {
        return step.kind != FusedStep::Kind::reduce ||
               shapes[step.operands[0]] == whole;
      });
}

std::vector<Shape> Compiled::output_shapes(const std::vector<array>& inputs) {
  std::vector<Shape> shapes = value_shapes(inputs);
  std::vector<Shape> results;
  for (int value : program_.outputs) {
    results.push_back(shapes[value]);
  }
  return results;
}

}  // namespace mlx::core
