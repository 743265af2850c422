// Evaluation: streams, asynchronous work, errors, donation, extensions.
#include <gtest/gtest.h>

#include <thread>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/memory.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "mlx/utils.h"

namespace mlx::core {
namespace {

// As an extension writes it: allocates, then dispatches on its stream.
class Doubled : public UnaryPrimitive {
 public:
  explicit Doubled(Stream s, bool fails = false)
      : UnaryPrimitive(s), fails_(fails) {}
  void eval_cpu(const std::vector<array>& inputs, array& out) override {
    if (fails_) {
      throw std::runtime_error("[Doubled] told to fail.");
    }
    out.set_data(allocator::malloc(out.nbytes()));
    auto& encoder = cpu::get_command_encoder(stream());
    encoder.set_input_array(inputs[0]);
    encoder.set_output_array(out);
    encoder.dispatch([in = array::unsafe_weak_copy(inputs[0]),
                      to = array::unsafe_weak_copy(out)]() mutable {
      for (size_t i = 0; i < in.size(); ++i) {
        to.data<float>()[i] = 2 * in.data<float>()[i];
      }
    });
  }
  void eval_gpu(const std::vector<array>&, array&) override {
    throw std::runtime_error("[Doubled] no gpu.");
  }
  void print(std::ostream& os) override { os << "Doubled"; }

 private:
  bool fails_;
};

array doubled(const array& x, Stream s, bool fails = false) {
  return array(x.shape(), x.dtype(), std::make_shared<Doubled>(s, fails), {x});
}

TEST(Eval, RunsAnExtensionInline) {
  array x = ones({4});
  array y = doubled(x, default_stream(Device::cpu)) + array(1.0f);
  EXPECT_EQ(sum(y).item<float>(), 12.0f);
  EXPECT_STREQ(Doubled(default_stream(Device::cpu)).name(), "Doubled");
}

TEST(Eval, RunsAnExtensionOnAnotherStream) {
  Stream other = new_stream(Device::cpu);
  array y = doubled(add(ones({4}), array(1.0f), other), other);
  EXPECT_EQ(sum(y).item<float>(), 16.0f);
}

TEST(Eval, StreamsWaitForEachOther) {
  Stream a = new_stream(Device::cpu);
  Stream b = new_stream(Device::cpu);
  array x = ones({1000});
  for (int i = 0; i < 50; ++i) {
    x = add(x, array(1.0f), i % 3 == 0 ? a : i % 3 == 1 ? b : to_stream({}));
  }
  EXPECT_EQ(sum(x).item<float>(), 51000.0f);
}

TEST(Eval, AsyncWorkIsReadLater) {
  array x = ones({100000});
  for (int i = 0; i < 20; ++i) {
    x = x * array(2.0f) - array(1.0f);
  }
  async_eval(x);
  array y = x + array(1.0f);
  EXPECT_EQ(y.dtype(), float32);
  EXPECT_EQ(max(y).item<float>(), 2.0f);
}

TEST(Eval, AnErrorReachesTheCaller) {
  Stream s = default_stream(Device::cpu);
  array before = ones({2}) + array(1.0f);
  array bad = doubled(before, s, true);
  EXPECT_THROW(eval(bad), std::runtime_error);
  // What was computed before it stays.
  EXPECT_EQ(before.status(), array::available);
  EXPECT_EQ(sum(before).item<float>(), 4.0f);
  EXPECT_THROW(eval(bad), std::runtime_error);
}

TEST(Eval, AnErrorOfAnotherStreamReachesTheWaiter) {
  Stream s = new_stream(Device::cpu);
  array before = add(ones({2}), array(1.0f), s);
  array bad = add(doubled(before, s, true), array(1.0f), s);
  EXPECT_THROW(eval(bad), std::runtime_error);
  array fine = add(ones({2}), array(1.0f), s);
  EXPECT_EQ(sum(fine).item<float>(), 4.0f);
}

TEST(Eval, BuffersAreReusedWithinAChain) {
  size_t n = 1 << 20;
  array x = ones({static_cast<int>(n)});
  eval(x);
  reset_peak_memory();
  size_t before = get_active_memory();
  array y = x;
  for (int i = 0; i < 10; ++i) {
    y = exp(y) * array(0.5f);
  }
  eval(y);
  // One buffer for the whole chain, not one a step.
  EXPECT_LE(get_peak_memory() - before, 2 * n * sizeof(float) + (1 << 16));
}

TEST(Eval, ThreadsEvaluateTheirOwnGraphs) {
  array shared = ones({1000});
  eval(shared);
  std::vector<std::thread> threads;
  std::vector<float> results(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      array x = shared;
      for (int i = 0; i < 50; ++i) {
        x = x + array(static_cast<float>(t));
      }
      results[t] = sum(x).item<float>();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int t = 0; t < 8; ++t) {
    EXPECT_EQ(results[t], 1000.0f * (1 + 50 * t));
  }
}

TEST(Eval, AMissingGpuIsAClearError) {
  if (is_available(Device(Device::gpu))) {
    return;
  }
  EXPECT_THROW(set_default_device(Device(Device::gpu)), std::invalid_argument);
  EXPECT_THROW(new_stream(Device(Device::gpu)), std::invalid_argument);
}

}  // namespace
}  // namespace mlx::core
