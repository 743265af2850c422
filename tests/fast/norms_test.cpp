// rms_norm and layer_norm against their definitions in double, gradients and
// batches against the composition.
#include <gtest/gtest.h>

#include <cmath>

#include "mlx/fast.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace mlx::core {

namespace {

array values(const Shape& shape, float offset) {
  int n = 1;
  for (int d : shape) {
    n *= d;
  }
  std::vector<float> v;
  for (int i = 0; i < n; ++i) {
    v.push_back(std::sin(static_cast<float>(i) * 1.3f) * 3 + offset);
  }
  return array(v.begin(), shape);
}

array definition(
    const array& x, const array& w, const array& b, float eps, bool centered) {
  array a = astype(x, float64);
  if (centered) {
    a = subtract(a, mean(a, -1, true));
  }
  array power = mean(square(a), -1, true);
  array y = multiply(a, rsqrt(add(power, array(eps, float64))));
  return add(multiply(y, w), b);
}

void expect_close(const array& got, const array& wanted, double tolerance) {
  array difference = max(abs(subtract(astype(got, float64), wanted)));
  EXPECT_LE(difference.item<float>(), tolerance);
}

}  // namespace

TEST(Norms, RowsOfAnyLengthAndType) {
  for (int n : {1, 5, 8, 33, 1024, 5000}) {
    array x = values({3, n}, 0.5f);
    array w = values({n}, 1.0f);
    array b = values({n}, 0.0f);
    array zero = array(0.0f);
    array one = array(1.0f);
    for (auto [dtype, tolerance] :
         {std::pair{float32, 1e-5}, {float16, 1e-2}, {bfloat16, 0.1}}) {
      SCOPED_TRACE(testing::Message() << n << ' ' << dtype);
      array h = astype(x, dtype);
      array hw = astype(w, dtype);
      array hb = astype(b, dtype);
      EXPECT_EQ(fast::rms_norm(h, hw, 1e-5f).dtype(), dtype);
      expect_close(
          fast::rms_norm(h, hw, 1e-5f),
          definition(h, hw, zero, 1e-5f, false),
          tolerance);
      expect_close(
          fast::rms_norm(h, std::nullopt, 1e-5f),
          definition(h, one, zero, 1e-5f, false),
          tolerance);
      expect_close(
          fast::layer_norm(h, hw, hb, 1e-5f),
          definition(h, hw, hb, 1e-5f, true),
          tolerance);
      expect_close(
          fast::layer_norm(h, std::nullopt, hb, 1e-5f),
          definition(h, one, hb, 1e-5f, true),
          tolerance);
    }
  }
}

TEST(Norms, LargeMeanKeepsItsDigits) {
  array x = add(values({2, 256}, 0.0f), array(1000.0f));
  array one = array(1.0f);
  expect_close(
      fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f),
      definition(x, one, array(0.0f), 1e-5f, true),
      1e-4);
}

TEST(Norms, PromotionAndErrors) {
  array x = values({2, 4}, 0.0f);
  EXPECT_EQ(fast::rms_norm(astype(x, bfloat16), ones({4}), 1).dtype(), float32);
  EXPECT_THROW(fast::rms_norm(x, ones({3}), 1), std::invalid_argument);
  EXPECT_THROW(
      fast::layer_norm(x, ones({4}), ones({1, 4}), 1), std::invalid_argument);
  EXPECT_THROW(
      fast::rms_norm(astype(x, int32), std::nullopt, 1), std::invalid_argument);
  EXPECT_THROW(
      fast::rms_norm(array(1.0f), std::nullopt, 1), std::invalid_argument);
}

TEST(Norms, GradientsAndBatches) {
  std::vector<array> in = {
      values({3, 6}, 0.2f), values({6}, 1.0f), values({6}, 0.0f)};
  array g = values({3, 6}, 0.1f);
  auto fused = [](const std::vector<array>& a) {
    return std::vector<array>{fast::layer_norm(a[0], a[1], a[2], 1e-3f)};
  };
  auto composed = [](const std::vector<array>& a) {
    array c = subtract(a[0], mean(a[0], -1, true));
    array r = rsqrt(add(mean(square(c), -1, true), array(1e-3f)));
    return std::vector<array>{add(multiply(multiply(c, r), a[1]), a[2])};
  };
  auto got = vjp(fused, in, {g}).second;
  auto wanted = vjp(composed, in, {g}).second;
  for (int i = 0; i < 3; ++i) {
    expect_close(got[i], astype(wanted[i], float64), 1e-4);
  }
  expect_close(
      jvp(fused, in, in).second[0],
      astype(jvp(composed, in, in).second[0], float64),
      1e-4);
  auto rows = [&](const array& row) {
    return fast::layer_norm(row, in[1], in[2], 1e-3f);
  };
  expect_close(vmap(rows, 0, 0)(in[0]), astype(fused(in)[0], float64), 1e-6);
}

}  // namespace mlx::core
