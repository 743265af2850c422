// Recordings: what was submitted once runs again as one piece. Without a gpu
// these tests say that they were left out.
#include <gtest/gtest.h>

#include <functional>

#include "backend/backend.h"
#include "mlx/memory.h"
#include "mlx/ops.h"
#include "mlx/random.h"
#include "mlx/transforms.h"

namespace mlx::core {
namespace {

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = find_backend(Device::gpu);
    if (!backend_) {
      GTEST_SKIP() << "no usable gpu";
    }
  }

  // A copy of `values` on the device, to be written to between replays.
  static array on_device(const std::vector<float>& values, Stream s) {
    array host(values.begin(), {static_cast<int>(values.size())});
    array device = add(host, array(0.0f), s);
    device.eval();
    return device;
  }

  using Build = std::function<std::vector<array>(const std::vector<array>&)>;

  // Records the nodes that `build` makes of the inputs, in order; all are
  // results. Runs them once before, so that no kernel is loaded meanwhile.
  Recorded record(
      std::vector<array> inputs,
      const std::vector<bool>& stays,
      const Build& build) {
    mlx::core::eval(build(inputs));
    return backend_->record(
        default_stream(Device::gpu),
        std::move(inputs),
        stays,
        [&](std::vector<array> given) {
          auto context = std::make_shared<EvalContext>();
          std::vector<array> nodes = build(given);
          given.clear();
          for (const array& node : nodes) {
            backend_->submit(node, context);
          }
          return nodes;
        });
  }

  std::vector<float> values(array& a) {
    backend_->synchronize(default_stream(Device::gpu));
    a.set_status(array::available);
    return {a.data<float>(), a.data<float>() + a.size()};
  }

  Backend* backend_ = nullptr;
};

TEST_F(CudaTest, ReplayReadsItsInputsAnew) {
  Stream s = default_stream(Device::gpu);
  auto wave = [&](const std::vector<array>& in) {
    array y = multiply(in[0], in[0], s);
    return std::vector<array>{y, add(y, in[0], s)};
  };
  Recorded recorded = record({on_device({1, 2, 3, 4}, s)}, {false}, wave);
  EXPECT_EQ(values(recorded.results[1]), (std::vector<float>{2, 6, 12, 20}));
  ASSERT_NE(recorded.recording, nullptr);
  for (float x : {5.0f, 7.0f}) {
    std::vector<array> inputs{on_device({x, 2, 3, x}, s)};
    auto results = recorded.recording->replay(inputs);
    ASSERT_TRUE(results);
    EXPECT_EQ(
        values(results->at(1)),
        (std::vector<float>{x * x + x, 6, 12, x * x + x}));
    EXPECT_EQ(values(results->at(0))[0], x * x);
  }
  // Results of the first time are not written again.
  EXPECT_EQ(values(recorded.results[1])[0], 2);
}

TEST_F(CudaTest, ReplayBringsBytesOfTheHost) {
  Stream s = default_stream(Device::gpu);
  auto twice = [&](const std::vector<array>& in) {
    return std::vector<array>{add(in[0], in[0], s)};
  };
  Recorded recorded = record({array(3.0f)}, {false}, twice);
  ASSERT_NE(recorded.recording, nullptr);
  for (float x : {5.0f, 7.0f}) {
    std::vector<array> inputs{array(x)};
    auto results = recorded.recording->replay(inputs);
    ASSERT_TRUE(results);
    EXPECT_EQ(values(results->at(0))[0], 2 * x);
  }
}

TEST_F(CudaTest, StateThatStaysIsWrittenInPlace) {
  Stream s = default_stream(Device::gpu);
  array one = on_device({1}, s);
  auto step = [&](const std::vector<array>& in) {
    return std::vector<array>{add(in[0], in[1], s)};
  };
  std::vector<array> inputs{on_device(std::vector<float>(4096, 1.0f), s), one};
  Recorded recorded = record(std::move(inputs), {true, true}, step);
  ASSERT_NE(recorded.recording, nullptr);
  array state = recorded.results[0];
  recorded.results.clear();
  const void* place = state.buffer().ptr();
  for (int i = 0; i < 5; ++i) {
    inputs = {std::move(state), one};
    auto results = recorded.recording->replay(inputs);
    ASSERT_TRUE(results);
    state = std::move(results->at(0));
    EXPECT_EQ(state.buffer().ptr(), place);
  }
  EXPECT_EQ(values(state)[4095], 7);
  // Somebody else has it: it must not be written, and lies in two places now.
  inputs = {state, one};
  EXPECT_FALSE(recorded.recording->replay(inputs));
  EXPECT_EQ(inputs.size(), 2u);
  inputs = {on_device(std::vector<float>(4096, 1.0f), s), one};
  EXPECT_FALSE(recorded.recording->replay(inputs));
}

TEST_F(CudaTest, MemoryOfARecordingIsNobodyElses) {
  Stream s = default_stream(Device::gpu);
  auto work = [&](const std::vector<array>& in) {
    array y = exp(in[0], s);
    return std::vector<array>{y, add(y, y, s)};
  };
  array x = on_device(std::vector<float>(1000, 2.0f), s);
  Recorded recorded = record({x}, {true}, work);
  // Takes memory of the same size, over and over.
  array other = on_device(std::vector<float>(1000, 0.0f), s);
  for (int i = 0; i < 20; ++i) {
    other = add(other, array(1.0f), s);
    other.eval();
  }
  std::vector<array> inputs{x};
  auto results = recorded.recording->replay(inputs);
  ASSERT_TRUE(results);
  EXPECT_EQ(values(other)[999], 20);
  EXPECT_NEAR(values(results->at(1))[999], 2 * std::exp(2.0f), 1e-5);
  size_t active = get_active_memory();
  recorded = {};
  EXPECT_LT(get_active_memory(), active);
}

// Blocks meet in the kernels of such lists by a count that goes on over
// replays and what runs between them.
TEST_F(CudaTest, ReplayOfAListThatAllMultiprocessorsShare) {
  Stream s = default_stream(Device::gpu);
  array ones = full({64, 64}, 0.25f, float32, s);
  std::vector<array> w = quantize(ones, 32, 8, "affine", std::nullopt, s);
  mlx::core::eval(w);
  auto chain = [&](const std::vector<array>& in) {
    std::vector<array> nodes;
    array y = in[0];
    for (int i = 0; i < 4; ++i) {
      y = quantized_matmul(y, w[0], w[1], w[2], true, 32, 8, "affine", s);
      nodes.push_back(y);
      y = multiply(y, in[0], s);
      nodes.push_back(y);
    }
    return nodes;
  };
  array x = full({1, 64}, 1.0f, float32, s);
  x.eval();
  Recorded recorded = record({x}, {true}, chain);
  ASSERT_NE(recorded.recording, nullptr);
  for (int i = 0; i < 3; ++i) {
    std::vector<array> inputs{x};
    auto results = recorded.recording->replay(inputs);
    ASSERT_TRUE(results);
    array again = chain({x}).back();
    again.eval();
    EXPECT_NEAR(again.data<float>()[63], 65536.0f, 1.0f);
    EXPECT_NEAR(values(results->back())[0], 65536.0f, 1.0f);
  }
}

// Products of one row begin before the kernel ahead of them is done, and wait
// for it by themselves: each reads what the one before has written, in memory
// that is used again two products later.
TEST_F(CudaTest, ProductsThatBeginEarlyReadWhatIsDone) {
  Stream s = default_stream(Device::gpu);
  constexpr int kSize = 5120;
  array key = random::key(7);
  array w = random::normal({kSize, kSize}, bfloat16, 0.0f, 0.014f, key, s);
  std::vector<array> q = quantize(w, 64, 4, "affine", std::nullopt, s);
  array turned = transpose(w, s);
  mlx::core::eval(q);
  turned.eval();
  auto follow = [&](const array& x, int i) {
    switch (i % 5) {
      case 2:
        return matmul(x, w, s);
      case 3:
        return matmul(x, turned, s);
      case 4:
        return multiply(x, array(0.5f, bfloat16), s);
      default:
        return quantized_matmul(x, q[0], q[1], q[2], true, 64, 4, "affine", s);
    }
  };
  constexpr int kSteps = 15;
  array x = full({1, kSize}, 1.0f, bfloat16, s);
  array want = x;
  for (int i = 0; i < kSteps; ++i) {
    want = follow(want, i);
    want.eval();
    backend_->synchronize(s);
  }
  EXPECT_GT(max(abs(want, s), s).item<float>(), 1e-3f);
  auto chain = [&](const std::vector<array>& in) {
    std::vector<array> nodes;
    for (int i = 0; i < kSteps; ++i) {
      nodes.push_back(follow(i == 0 ? in[0] : nodes.back(), i));
    }
    return nodes;
  };
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(array_equal(chain({x}).back(), want, s).item<bool>());
  }
  Recorded recorded = record({x}, {true}, chain);
  ASSERT_NE(recorded.recording, nullptr);
  for (int i = 0; i < 10; ++i) {
    std::vector<array> inputs{x};
    auto results = recorded.recording->replay(inputs);
    ASSERT_TRUE(results);
    backend_->synchronize(s);
    results->back().set_status(array::available);
    EXPECT_TRUE(array_equal(results->back(), want, s).item<bool>());
  }
}

TEST_F(CudaTest, AnErrorWhileRecordingLeavesTheStreamUsable) {
  Stream s = default_stream(Device::gpu);
  EXPECT_THROW(
      backend_->record(
          s,
          {},
          {},
          [](const std::vector<array>&) -> std::vector<array> {
            throw std::runtime_error("no");
          }),
      std::runtime_error);
  array x = on_device({1}, s);
  EXPECT_EQ(add(x, x, s).item<float>(), 2);
}

TEST_F(CudaTest, ItemReadsOnlyItself) {
  Stream s = default_stream(Device::gpu);
  array x = on_device(std::vector<float>(1 << 20, 3.0f), s);
  array one = slice(x, {5}, {6}, s);
  size_t before = get_active_memory();
  EXPECT_EQ(one.item<float>(), 3);
  EXPECT_LT(get_active_memory(), before + 4096);
}

}  // namespace
}  // namespace mlx::core
