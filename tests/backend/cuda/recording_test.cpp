// Recordings: what was submitted once runs again as one piece. Without a gpu
// these tests say that they were left out.
#include <gtest/gtest.h>

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

  Backend* backend_ = nullptr;
};

TEST_F(CudaTest, ReplayReadsItsInputsAnew) {
  Stream s = default_stream(Device::gpu);
  array x = on_device({1, 2, 3, 4}, s);
  array y = multiply(x, x, s);
  array z = add(y, x, s);
  mlx::core::eval(multiply(x, x, s));  // so that no kernel is loaded meanwhile
  auto context = std::make_shared<EvalContext>();
  auto recording = backend_->record(s, [&] {
    backend_->submit(y, context);
    backend_->submit(z, context);
  });
  ASSERT_NE(recording, nullptr);
  recording->replay();
  recording->replay();
  backend_->synchronize(s);
  z.set_status(array::available);
  EXPECT_EQ(z.data<float>()[0], 2);
  EXPECT_EQ(z.data<float>()[3], 20);
}

TEST_F(CudaTest, MemoryOfARecordingIsNobodyElses) {
  Stream s = default_stream(Device::gpu);
  array x = on_device(std::vector<float>(1000, 2.0f), s);
  array y = exp(x, s);
  array z = add(y, y, s);
  auto context = std::make_shared<EvalContext>();
  auto recording = backend_->record(s, [&] {
    backend_->submit(y, context);
    backend_->submit(z, context);
  });
  // Takes memory of the same size, over and over.
  array other = on_device(std::vector<float>(1000, 0.0f), s);
  for (int i = 0; i < 20; ++i) {
    other = add(other, array(1.0f), s);
    other.eval();
  }
  recording->replay();
  backend_->synchronize(s);
  EXPECT_EQ(other.data<float>()[999], 20);
  z.set_status(array::available);
  EXPECT_NEAR(z.data<float>()[999], 2 * std::exp(2.0f), 1e-5);
  size_t active = get_active_memory();
  recording.reset();
  EXPECT_LE(get_active_memory(), active);
}

// Blocks meet in the kernels of such lists by a count that goes on over
// replays and what runs between them.
TEST_F(CudaTest, ReplayOfAListThatAllMultiprocessorsShare) {
  Stream s = default_stream(Device::gpu);
  array ones = full({64, 64}, 0.25f, float32, s);
  std::vector<array> w = quantize(ones, 32, 8, "affine", std::nullopt, s);
  mlx::core::eval(w);
  auto product = [&](const array& x) {
    return quantized_matmul(x, w[0], w[1], w[2], true, 32, 8, "affine", s);
  };
  array x = full({1, 64}, 1.0f, float32, s);
  auto chain = [&] {
    std::vector<array> nodes{x};
    for (int i = 0; i < 4; ++i) {
      nodes.push_back(product(nodes.back()));
      nodes.push_back(multiply(nodes.back(), x, s));
    }
    return nodes;
  };
  x.eval();
  mlx::core::eval(chain().back());  // so that no kernel is loaded meanwhile
  std::vector<array> nodes = chain();
  auto context = std::make_shared<EvalContext>();
  auto recording = backend_->record(s, [&] {
    for (size_t i = 1; i < nodes.size(); ++i) {
      backend_->submit(nodes[i], context);
    }
  });
  for (int i = 0; i < 3; ++i) {
    recording->replay();
    array again = chain().back();
    again.eval();
    EXPECT_NEAR(again.data<float>()[63], 65536.0f, 1.0f);
  }
  backend_->synchronize(s);
  nodes.back().set_status(array::available);
  EXPECT_NEAR(nodes.back().data<float>()[0], 65536.0f, 1.0f);
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
  auto chain = [&] {
    std::vector<array> nodes{x};
    for (int i = 0; i < kSteps; ++i) {
      nodes.push_back(follow(nodes.back(), i));
    }
    return nodes;
  };
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(array_equal(chain().back(), want, s).item<bool>());
  }
  std::vector<array> nodes = chain();
  auto context = std::make_shared<EvalContext>();
  auto recording = backend_->record(s, [&] {
    for (size_t i = 1; i < nodes.size(); ++i) {
      backend_->submit(nodes[i], context);
    }
  });
  for (int i = 0; i < 10; ++i) {
    recording->replay();
  }
  backend_->synchronize(s);
  nodes.back().set_status(array::available);
  EXPECT_TRUE(array_equal(nodes.back(), want, s).item<bool>());
}

TEST_F(CudaTest, AnErrorWhileRecordingLeavesTheStreamUsable) {
  Stream s = default_stream(Device::gpu);
  EXPECT_THROW(
      backend_->record(s, [] { throw std::runtime_error("no"); }),
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
