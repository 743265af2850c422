// Reductions: values over every layout against a plain loop in double, result
// types, errors, and sums whose accuracy and repeatability depend on blocks.
#include "mlx/ops/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "backend/cpu/threads.h"
#include "mlx/error.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace mlx::core {

namespace {

array numbers(const Shape& shape, Dtype dtype) {
  int n = 1;
  for (int d : shape) {
    n *= d;
  }
  std::vector<float> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(static_cast<float>((i * 37 + 11) % 23) - 7);
  }
  return astype(array(values.begin(), shape), dtype);
}

std::vector<float> values_of(const array& x) {
  array y = contiguous(astype(x, float32));
  y.eval();
  return {y.data<float>(), y.data<float>() + y.size()};
}

using Fold = std::function<double(double, double)>;

// `result` against x folded over the axes that `reduced` names.
void expect_fold(
    const array& x,
    const array& result,
    const std::vector<bool>& reduced,
    double start,
    const Fold& fold) {
  std::vector<float> in = values_of(x);
  std::vector<double> expected(result.size(), start);
  size_t i = 0;
  for (int a = 0; a < x.shape(0); ++a) {
    for (int b = 0; b < x.shape(1); ++b) {
      for (int c = 0; c < x.shape(2); ++c) {
        size_t at = reduced[0] ? 0 : a;
        at = reduced[1] ? at : at * x.shape(1) + b;
        at = reduced[2] ? at : at * x.shape(2) + c;
        expected[at] = fold(expected[at], in[i++]);
      }
    }
  }
  std::vector<float> got = values_of(result);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(got[k], expected[k]) << "at " << k;
  }
}

std::vector<array> layouts(Dtype dtype) {
  array x = numbers({5, 4, 19}, dtype);
  array y = numbers({19, 10, 4}, dtype);
  return {
      x,
      transpose(y, {2, 1, 0}),
      transpose(x, {1, 2, 0}),
      slice(y, {18, 0, 3}, {-20, 10, -5}, {-2, 3, -1}),
      broadcast_to(numbers({1, 4, 1}, dtype), {3, 4, 5}),
      broadcast_to(numbers({1, 1, 1}, dtype), {3, 4, 5})};
}

}  // namespace

TEST(Reduce, EveryLayoutAndAxes) {
  for (Dtype dtype : {int8, int64, bfloat16, float32, float64}) {
    for (const array& x : layouts(dtype)) {
      for (int mask = 1; mask < 8; ++mask) {
        std::vector<bool> reduced;
        std::vector<int> axes;
        for (int i = 0; i < 3; ++i) {
          reduced.push_back(mask >> i & 1);
          if (reduced[i]) {
            axes.push_back(i - (mask & 2 ? 3 : 0));
          }
        }
        SCOPED_TRACE(testing::Message() << dtype << " mask " << mask);
        expect_fold(
            x, sum(astype(x, int32), axes, true), reduced, 0, std::plus<>());
        double inf = std::numeric_limits<double>::infinity();
        expect_fold(x, max(x, axes, true), reduced, -inf, [](auto a, auto b) {
          return std::max(a, b);
        });
        expect_fold(x, min(x, axes, true), reduced, inf, [](auto a, auto b) {
          return std::min(a, b);
        });
        expect_fold(x, any(x, axes, true), reduced, 0, [](auto a, auto b) {
          return a != 0 || b != 0;
        });
        expect_fold(x, all(x, axes, true), reduced, 1, [](auto a, auto b) {
          return a != 0 && b != 0;
        });
      }
    }
  }
}

TEST(Reduce, ResultTypes) {
  for (auto [from, to] :
       {std::pair{bool_, int32},
        {int8, int32},
        {uint8, uint32},
        {uint16, uint32},
        {int64, int64},
        {uint64, uint64},
        {float16, float16},
        {complex64, complex64}}) {
    EXPECT_EQ(sum(ones({3}, from)).dtype(), to);
    EXPECT_EQ(prod(ones({3}, from)).dtype(), to);
    EXPECT_EQ(max(ones({3}, from)).dtype(), from);
    EXPECT_EQ(sum(ones({3}, from)).item<float>(), 3.0f);
  }
  EXPECT_EQ(mean(ones({3}, int32)).dtype(), float32);
  EXPECT_EQ(var(ones({3}, complex64)).dtype(), float32);
  EXPECT_EQ(argmax(ones({3})).dtype(), uint32);
  EXPECT_EQ(sum(ones({3}, int8), std::vector<int>{}).dtype(), int8);
}

TEST(Reduce, LongSumsAreAccurateAndDoNotDependOnThreads) {
  constexpr int kCount = (1 << 22) + 17;
  array x = full({kCount}, array(0.1f));
  double exact = double(0.1f) * kCount;
  float whole = sum(x).item<float>();
  EXPECT_NEAR(whole / exact, 1.0, 1e-6);
  cpu::set_num_threads(1);
  float alone = sum(add(x, array(0.0f))).item<float>();
  cpu::set_num_threads(0);
  EXPECT_EQ(whole, alone);
  array columns = sum(reshape(slice(x, {0}, {1 << 22}), {1 << 20, 4}), 0);
  EXPECT_NEAR(max(columns).item<float>() / (double(0.1f) * (1 << 20)), 1, 1e-6);
}

TEST(Reduce, SixteenBitTypesAddUpInFloat) {
  array x = ones({4096, 3}, bfloat16);
  EXPECT_EQ(max(sum(x, 0)).item<float>(), 4096.0f);
  // The sum itself is beyond float16.
  EXPECT_EQ(mean(full({100000}, array(4.0f, float16))).item<float>(), 4.0f);
}

TEST(Reduce, NaNs) {
  float nan = std::nanf("");
  array x = array({1.0f, nan, 3.0f, 2.0f, 7.0f, 0.0f, -1.0f, 5.0f, 4.0f, 1.0f});
  EXPECT_TRUE(std::isnan(max(x).item<float>()));
  EXPECT_TRUE(std::isnan(min(x).item<float>()));
  EXPECT_EQ(argmax(x).item<uint32_t>(), 1u);
  EXPECT_EQ(argmin(x).item<uint32_t>(), 1u);
  EXPECT_TRUE(all(slice(x, {0}, {5})).item<bool>());
}

TEST(Reduce, ArgumentsAreTheFirst) {
  array x = astype(array({3, 1, 7, 7, 1, 0}, {2, 3}, int32), bfloat16);
  array top = argmax(x, 1);
  EXPECT_EQ(values_of(top), (std::vector<float>{2, 0}));
  EXPECT_EQ(argmax(x, true).shape(), Shape({1, 1}));
  EXPECT_EQ(argmax(x).item<uint32_t>(), 2u);
  array rows = argmin(transpose(x), 0);
  EXPECT_EQ(values_of(rows), (std::vector<float>{1, 2}));
  array wide = full({5000}, array(-3.0f));
  EXPECT_EQ(
      argmax(concatenate({wide, array({-2.0f}), wide})).item<int>(), 5000);
}

TEST(Reduce, EmptyArrays) {
  array x = zeros({0, 3});
  EXPECT_EQ(sum(x).item<float>(), 0.0f);
  EXPECT_EQ(prod(x).item<float>(), 1.0f);
  EXPECT_TRUE(all(x).item<bool>());
  EXPECT_FALSE(any(x).item<bool>());
  EXPECT_TRUE(std::isnan(mean(x).item<float>()));
  EXPECT_EQ(prod(x, 0).shape(), Shape({3}));
  EXPECT_EQ(max(x, 1).shape(), Shape({0}));
  EXPECT_THROW(max(x, 0), std::invalid_argument);
  EXPECT_THROW(argmax(x), std::invalid_argument);
  EXPECT_THROW(logsumexp(x), std::invalid_argument);
}

TEST(Reduce, AxisErrors) {
  array x = zeros({2, 3});
  EXPECT_THROW(sum(x, 2), std::out_of_range);
  EXPECT_THROW(argmin(x, -3), std::out_of_range);
  EXPECT_THROW(mean(x, 2), AxisError);
  EXPECT_THROW(softmax(x, 2), AxisError);
  EXPECT_THROW(sum(x, std::vector<int>{0, -2}), std::invalid_argument);
}

TEST(Reduce, Derivatives) {
  array x = array({2.0f, 0.0f, 3.0f, 3.0f}, {2, 2});
  array g = array({1.0f, 10.0f});
  auto gradient = [&](auto f) {
    return vjp(
               [&](const std::vector<array>& in) {
                 return std::vector<array>{f(in[0])};
               },
               {x},
               {g})
        .second[0];
  };
  auto expect = [](const array& got, std::vector<float> values) {
    array wanted(values.begin(), {2, 2});
    EXPECT_TRUE(all(equal(got, wanted)).item<bool>()) << got;
  };
  expect(gradient([](auto& a) { return sum(a, 1); }), {1, 1, 10, 10});
  expect(gradient([](auto& a) { return prod(a, 1); }), {0, 2, 30, 30});
  expect(gradient([](auto& a) { return max(a, 1); }), {1, 0, 5, 5});
  expect(gradient([](auto& a) { return min(a, 0); }), {1, 10, 0, 0});
}

}  // namespace mlx::core
