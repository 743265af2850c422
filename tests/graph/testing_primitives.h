// Operations of the tests, written as extensions write them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

namespace mlx::core::testing {

/// Copies its input when run, after calling `before`, which may wait or throw.
class Probe : public UnaryPrimitive {
 public:
  Probe(Stream s, std::function<void()> before)
      : UnaryPrimitive(s), before_(std::move(before)) {}
  void eval_cpu(const std::vector<array>& inputs, array& out) override {
    before_();
    out.set_data(allocator::malloc(out.nbytes()));
    auto& encoder = cpu::get_command_encoder(stream());
    encoder.dispatch([in = array::unsafe_weak_copy(inputs[0]),
                      to = array::unsafe_weak_copy(out)]() mutable {
      std::copy_n(in.data<float>(), in.size(), to.data<float>());
    });
  }
  void eval_gpu(const std::vector<array>&, array&) override {
    throw std::runtime_error("[Probe] no gpu.");
  }
  const char* name() const override { return "Probe"; }

 private:
  std::function<void()> before_;
};

/// `x` is float32 and row-major.
inline array probe(const array& x, Stream s, std::function<void()> before) {
  return array(
      x.shape(), x.dtype(), std::make_shared<Probe>(s, std::move(before)), {x});
}

}  // namespace mlx::core::testing
