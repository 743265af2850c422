// Softmax and log-sum-exp: values for short and long rows against double,
// infinities and NaN, gradients.
#include "mlx/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace mlx::core {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

array values(int rows, int n) {
  std::vector<float> v;
  for (int i = 0; i < rows * n; ++i) {
    v.push_back(std::sin(static_cast<float>(i)) * 20);
  }
  return array(v.begin(), {rows, n});
}

}  // namespace

TEST(Softmax, RowsOfAnyLength) {
  for (int n : {1, 3, 8, 31, 64, 1000, 9001, 70001}) {
    array x = values(2, n);
    array y = softmax(x, -1);
    array log_sum = logsumexp(x, -1);
    eval({y, log_sum});
    for (int r = 0; r < 2; ++r) {
      const float* row = x.data<float>() + r * n;
      double total = 0;
      for (int i = 0; i < n; ++i) {
        total += std::exp(double(row[i]));
      }
      EXPECT_NEAR(log_sum.data<float>()[r], std::log(total), 4e-6);
      for (int i = 0; i < n; ++i) {
        double expected = std::exp(double(row[i])) / total;
        // x - max, up to 40, is rounded to float32.
        ASSERT_NEAR(y.data<float>()[r * n + i], expected, 4e-6 * expected)
            << "n " << n << " at " << i;
      }
    }
  }
}

TEST(Softmax, OtherAxesAndTypes) {
  array x = values(6, 35);
  array y = softmax(transpose(x), 0);
  EXPECT_TRUE(allclose(transpose(y), softmax(x, 1)).item<bool>());
  array all_axes = softmax(x, std::vector<int>{0, 1});
  EXPECT_NEAR(sum(all_axes).item<float>(), 1, 1e-6);
  EXPECT_EQ(softmax(astype(x, int32), -1).dtype(), float32);
  array half = softmax(astype(x, bfloat16), -1);
  EXPECT_EQ(half.dtype(), bfloat16);
  EXPECT_TRUE(
      allclose(half, softmax(astype(astype(x, bfloat16), float32), -1), 8e-3)
          .item<bool>());
  array wide = softmax(astype(x, float64), -1);
  EXPECT_TRUE(allclose(wide, softmax(x, -1), 1e-5).item<bool>());
}

TEST(Softmax, InfinitiesAndNaN) {
  array x = array({-kInfinity, 0.0f, 0.0f});
  array y = softmax(x, -1);
  y.eval();
  EXPECT_EQ(y.data<float>()[0], 0.0f);
  EXPECT_EQ(y.data<float>()[1], 0.5f);
  EXPECT_EQ(logsumexp(full({3}, array(-kInfinity))).item<float>(), -kInfinity);
  EXPECT_EQ(logsumexp(array({1.0f, kInfinity})).item<float>(), kInfinity);
  for (int n : {3, 70001}) {
    array ramp = add(zeros({n}), array({std::nanf("")}));
    EXPECT_TRUE(all(isnan(softmax(ramp, -1))).item<bool>());
    EXPECT_TRUE(std::isnan(logsumexp(ramp).item<float>()));
  }
}

TEST(Softmax, Gradients) {
  array x = values(3, 5);
  array g = values(3, 5);
  auto f = [](const std::vector<array>& in) {
    return std::vector<array>{softmax(in[0], -1)};
  };
  auto composed = [](const std::vector<array>& in) {
    array e = exp(in[0]);
    return std::vector<array>{divide(e, sum(e, -1, true))};
  };
  EXPECT_TRUE(allclose(
                  vjp(f, {x}, {g}).second[0],
                  vjp(composed, {x}, {g}).second[0],
                  1e-4,
                  1e-5)
                  .item<bool>());
  EXPECT_TRUE(allclose(
                  jvp(f, {x}, {g}).second[0],
                  jvp(composed, {x}, {g}).second[0],
                  1e-4,
                  1e-5)
                  .item<bool>());
  auto log_sum = [](const std::vector<array>& in) {
    return std::vector<array>{logsumexp(in[0], -1, true)};
  };
  array one = ones({3, 1});
  EXPECT_TRUE(allclose(vjp(log_sum, {x}, {one}).second[0], softmax(x, -1))
                  .item<bool>());
}

}  // namespace mlx::core
