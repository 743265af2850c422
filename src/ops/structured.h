// The base of built-in operations: evaluation by the backend's kernel table,
// naming, equality and parameters in one place.
#pragma once

#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "mlx/primitives.h"

namespace mlx::core {

struct NoParams {
  bool operator==(const NoParams&) const = default;
};

struct AxisParams {
  int axis;
  bool operator==(const AxisParams&) const = default;
};

/// A primitive whose class has `static constexpr const char* kName` and whose
/// behaviour is fixed by `Params` (comparable, exportable data).
template <typename Op, typename Params = NoParams>
class Structured : public Primitive {
 public:
  explicit Structured(Stream stream, Params params = {})
      : Primitive(stream), params_(std::move(params)) {}

  const Params& params() const { return params_; }
  const char* name() const override { return Op::kName; }

  void eval_cpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override {
    get_backend(Device::cpu).run_kernel(*this, inputs, outputs);
  }
  void eval_gpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override {
    get_backend(Device::gpu).run_kernel(*this, inputs, outputs);
  }

  bool is_equivalent(const Primitive& other) const override {
    return typeid(other) == typeid(*this) &&
           static_cast<const Structured&>(other).params_ == params_;
  }

 private:
  Params params_;
};

/// A node with one output computed by a new `Op`.
template <typename Op, typename... Args>
array make_node(
    Shape shape,
    Dtype dtype,
    std::vector<array> inputs,
    Stream s,
    Args&&... args) {
  return array(
      std::move(shape),
      dtype,
      std::make_shared<Op>(s, std::forward<Args>(args)...),
      std::move(inputs));
}

}  // namespace mlx::core
