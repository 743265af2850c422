// The classes of extensions in the forms of MLX 0.26 and of today, and what
// their evaluation may use. That this file compiles is half of the test.
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>
#include <vector>

#include "mlx/allocator.h"
#include "mlx/backend/common/utils.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/backend/cpu/parallel.h"
#include "mlx/backend/cuda/encoder.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"

namespace mx = mlx::core;

namespace {

// What both forms have in common.
class Scaled : public mx::Primitive {
 public:
  explicit Scaled(mx::Stream stream, float scale)
      : mx::Primitive(stream), scale_(scale) {}

  void eval_cpu(
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs) override {
    auto& x = inputs[0];
    auto& out = outputs[0];
    out.set_data(mx::allocator::malloc(out.nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_input_array(x);
    encoder.set_output_array(out);
    encoder.dispatch([x_ptr = x.data<float>(),
                      out_ptr = out.data<float>(),
                      size = out.size(),
                      shape = out.shape(),
                      strides = x.strides(),
                      scale = scale_]() {
      for (size_t i = 0; i < size; i++) {
        out_ptr[i] = scale * x_ptr[mx::elem_to_loc(i, shape, strides)];
      }
    });
  }
  void eval_gpu(
      const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("[Scaled] no gpu.");
  }
  std::vector<mx::array> jvp(
      const std::vector<mx::array>&,
      const std::vector<mx::array>& tangents,
      const std::vector<int>&) override {
    auto scale = mx::array(scale_, tangents[0].dtype());
    return {mx::multiply(scale, tangents[0], stream())};
  }
  std::vector<mx::array> vjp(
      const std::vector<mx::array>&,
      const std::vector<mx::array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<mx::array>&) override {
    std::vector<mx::array> vjps;
    for (auto arg : argnums) {
      (void)arg;
      auto scale = mx::array(scale_, cotangents[0].dtype());
      vjps.push_back(mx::multiply(scale, cotangents[0], stream()));
    }
    return vjps;
  }

 protected:
  float scale_;
};

class OldScaled final : public Scaled {
 public:
  using Scaled::Scaled;
  std::pair<std::vector<mx::array>, std::vector<int>> vmap(
      const std::vector<mx::array>& inputs,
      const std::vector<int>& axes) override {
    auto out = mx::array(
        inputs[0].shape(),
        inputs[0].dtype(),
        std::make_shared<OldScaled>(stream(), scale_),
        inputs);
    return {{out}, axes};
  }
  void print(std::ostream& os) override { os << "OldScaled"; }
  bool is_equivalent(const mx::Primitive& other) const override {
    return scale_ == static_cast<const OldScaled&>(other).scale_;
  }
};

class NewScaled final : public Scaled {
 public:
  using Scaled::Scaled;
  const char* name() const override { return "NewScaled"; }
  DEFINE_INPUT_OUTPUT_SHAPE()
};

// The macros, on a primitive with one output.
class Marked final : public mx::UnaryPrimitive {
 public:
  explicit Marked(mx::Stream stream) : mx::UnaryPrimitive(stream) {}
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.copy_shared_buffer(inputs[0]);
  }
  void eval_gpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.copy_shared_buffer(inputs[0]);
  }
  DEFINE_PRINT(Marked)
  DEFINE_DEFAULT_IS_EQUIVALENT()
  DEFINE_INPUT_OUTPUT_SHAPE()
};

template <typename Op>
mx::array scaled(const mx::array& x, float scale, mx::StreamOrDevice s = {}) {
  return mx::array(
      /* const std::vector<int>& shape = */ x.shape(),
      /* Dtype dtype = */ x.dtype(),
      /* std::shared_ptr<Primitive> primitive = */
      std::make_shared<Op>(mx::to_stream(s), scale),
      /* const std::vector<array>& inputs = */ {x});
}

template <typename Op>
class ExtensionForms : public testing::Test {};
using Forms = testing::Types<OldScaled, NewScaled>;
TYPED_TEST_SUITE(ExtensionForms, Forms);

TYPED_TEST(ExtensionForms, ComputesAndDifferentiates) {
  mx::array x({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  mx::array y = scaled<TypeParam>(mx::transpose(x), 3.0f, mx::Device::cpu);
  mx::array expected({3.0f, 9.0f, 6.0f, 12.0f}, {2, 2});
  EXPECT_TRUE(mx::array_equal(y, expected, mx::Device::cpu).item<bool>());
  auto [value, gradient] = mx::vjp(
      [](const mx::array& a) {
        return mx::sum(
            mx::square(scaled<TypeParam>(a, 3.0f, mx::Device::cpu)),
            mx::Device::cpu);
      },
      x,
      mx::array(1.0f));
  EXPECT_EQ(value.template item<float>(), 9.0f * 30.0f);
  EXPECT_TRUE(mx::array_equal(gradient, mx::multiply(mx::array(18.0f), x))
                  .template item<bool>());
}

TEST(ExtensionNames, ComeFromEitherForm) {
  mx::Stream s = mx::default_stream(mx::Device::cpu);
  OldScaled old_form(s, 1.0f);
  NewScaled new_form(s, 1.0f);
  Marked marked(s);
  EXPECT_STREQ(old_form.name(), "OldScaled");
  EXPECT_STREQ(marked.name(), "Marked");
  std::ostringstream os;
  new_form.print(os);
  EXPECT_EQ(os.str(), "NewScaled");
}

TEST(ExtensionDefaults, SayWhatIsMissing) {
  mx::array x({1.0f, 2.0f});
  NewScaled op(mx::default_stream(mx::Device::cpu), 1.0f);
  EXPECT_THROW(op.vmap({x}, {0}), std::invalid_argument);
  EXPECT_FALSE(op.is_equivalent(op));
  OldScaled old_form(mx::default_stream(mx::Device::cpu), 1.0f);
  EXPECT_THROW(old_form.output_shapes({x}), std::invalid_argument);
  EXPECT_EQ(op.output_shapes({x})[0], mx::Shape({2}));
}

// Sizes around a piece, a grain and where stores pass the caches.
TEST(ParallelFill, CoversEachElementOnce) {
  for (size_t size :
       {0u, 1u, 255u, 256u, 257u, 5000u, 100001u, (4u << 20) + 77u}) {
    std::vector<int> out(size, -1);
    mx::cpu::parallel_fill(
        out.data(), size, [](size_t begin, size_t count, int* to) {
          std::iota(to, to + count, static_cast<int>(begin));
        });
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ(out[i], static_cast<int>(i)) << "of " << size;
    }
  }
}

TEST(ParallelFill, TakesElementsOfAnySize) {
  struct Large {
    char bytes[3000];
  };
  std::vector<Large> large(7000);
  mx::cpu::parallel_fill(
      large.data(), large.size(), [](size_t begin, size_t count, Large* to) {
        for (size_t i = 0; i < count; ++i) {
          std::fill_n(to[i].bytes, 3000, static_cast<char>(begin + i));
        }
      });
  for (size_t i = 0; i < large.size(); ++i) {
    ASSERT_EQ(large[i].bytes[0], static_cast<char>(i));
    ASSERT_EQ(large[i].bytes[2999], static_cast<char>(i));
  }
}

TEST(ParallelFill, RaisesWhatIsThrown) {
  std::vector<float> out(1 << 20);
  auto fail = [](size_t, size_t, float*) { throw std::out_of_range("here"); };
  EXPECT_THROW(
      mx::cpu::parallel_fill(out.data(), out.size(), fail), std::out_of_range);
}

TEST(CudaExtensionEncoder, WantsAStreamOfTheGpu) {
  EXPECT_THROW(
      mx::cu::get_command_encoder(mx::default_stream(mx::Device::cpu)),
      std::invalid_argument);
}

TEST(CudaExtensionEncoder, GivesAddressesOrSaysThatThereIsNoGpu) {
  mx::Stream s(0, mx::Device::gpu);
  if (mx::is_available(mx::Device::gpu)) {
    s = mx::default_stream(mx::Device::gpu);
    mx::array x = mx::astype(mx::arange(3.0, s), mx::float32, s);
    x.eval();
    auto& encoder = mx::cu::get_command_encoder(s);
    EXPECT_NE(encoder.input<float>(x), nullptr);
    EXPECT_NE(encoder.stream(), nullptr);
    EXPECT_EQ(&encoder, &mx::cu::get_command_encoder(s));
  } else {
    EXPECT_THROW(mx::cu::get_command_encoder(s), std::runtime_error);
  }
}

TEST(Platforms, MetalIsNotHere) {
  EXPECT_FALSE(mx::metal::is_available());
  mx::metal::start_capture("nowhere");
  mx::metal::stop_capture();
  mx::metal::set_metallib_path("nowhere");
  EXPECT_THROW(mx::metal::device_info(), std::runtime_error);
  EXPECT_THROW(mx::metal::get_metallib_path(), std::runtime_error);
}

TEST(Platforms, GpusAreThoseOfTheDevice) {
  bool there = mx::is_available(mx::Device::gpu);
  EXPECT_EQ(mx::cu::is_available(), there);
  EXPECT_EQ(mx::gpu::is_available(), there);
  EXPECT_EQ(mx::gpu::device_count(), mx::device_count(mx::Device::gpu));
  EXPECT_EQ(mx::cu::device_info().count("device_name"), there ? 1u : 0u);
  EXPECT_TRUE(std::filesystem::is_directory(mx::current_binary_dir()));
}

}  // namespace
