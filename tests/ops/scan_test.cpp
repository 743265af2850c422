// Running reductions: every direction, axis and type against a plain loop, and
// derivatives against differences.
#include "mlx/ops/scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace mlx::core {

namespace {

using Fold = std::function<double(double, double)>;

std::vector<float> values_of(const array& x) {
  array y = contiguous(astype(x, float32));
  y.eval();
  return {y.data<float>(), y.data<float>() + y.size()};
}

// One row by the definition.
std::vector<double> running(
    std::vector<double> x,
    double start,
    const Fold& fold,
    bool reverse,
    bool inclusive) {
  if (reverse) {
    std::reverse(x.begin(), x.end());
  }
  double total = start;
  for (double& v : x) {
    double before = total;
    total = fold(total, v);
    v = inclusive ? total : before;
  }
  if (reverse) {
    std::reverse(x.begin(), x.end());
  }
  return x;
}

array numbers(const Shape& shape, Dtype dtype) {
  int n = shape[0] * shape[1];
  std::vector<float> v;
  for (int i = 0; i < n; ++i) {
    v.push_back(static_cast<float>((i * 5 + 3) % 7) - 2);
  }
  return astype(array(v.begin(), shape), dtype);
}

void expect_rows(
    const array& x,
    const array& y,
    double start,
    const Fold& fold,
    bool reverse,
    bool inclusive,
    double tolerance) {
  std::vector<float> in = values_of(x);
  std::vector<float> out = values_of(y);
  int n = x.shape(1);
  for (int r = 0; r < x.shape(0); ++r) {
    std::vector<double> row(in.begin() + r * n, in.begin() + (r + 1) * n);
    row = running(row, start, fold, reverse, inclusive);
    for (int i = 0; i < n; ++i) {
      if (std::abs(row[i]) < 1e30) {
        ASSERT_NEAR(out[r * n + i], row[i], tolerance)
            << "row " << r << " at " << i << " of " << n;
      }
    }
  }
}

}  // namespace

TEST(Scan, EveryDirectionAxisAndType) {
  double inf = std::numeric_limits<double>::infinity();
  auto log_add = [&](double a, double b) {
    double m = std::max(a, b);
    return m == -inf ? m : m + std::log(std::exp(a - m) + std::exp(b - m));
  };
  for (Dtype dtype : {int8, int32, int64, float16, float32, float64}) {
    for (int n : {1, 7, 8, 37}) {
      for (int flags = 0; flags < 8; ++flags) {
        bool reverse = flags & 1;
        bool inclusive = flags & 2;
        // The same rows as rows, and as columns of the transposed array.
        array x = numbers({3, n}, dtype);
        bool columns = flags & 4;
        array in = columns ? transpose(x) : x;
        int axis = columns ? 0 : 1;
        auto rows = [&](const array& y) { return columns ? transpose(y) : y; };
        SCOPED_TRACE(
            testing::Message()
            << dtype << " n " << n << " reverse " << reverse << " inclusive "
            << inclusive << " columns " << columns);
        expect_rows(
            x,
            rows(cumsum(in, axis, reverse, inclusive)),
            0,
            std::plus<>(),
            reverse,
            inclusive,
            0);
        expect_rows(
            x,
            rows(cummax(in, axis, reverse, inclusive)),
            -inf,
            [](double a, double b) { return std::max(a, b); },
            reverse,
            inclusive,
            0);
        expect_rows(
            x,
            rows(cummin(in, axis, reverse, inclusive)),
            inf,
            [](double a, double b) { return std::min(a, b); },
            reverse,
            inclusive,
            0);
        if (n < 10) {
          expect_rows(
              x,
              rows(cumprod(in, axis, reverse, inclusive)),
              1,
              std::multiplies<>(),
              reverse,
              inclusive,
              0);
        }
        expect_rows(
            x,
            rows(logcumsumexp(in, axis, reverse, inclusive)),
            -inf,
            log_add,
            reverse,
            inclusive,
            dtype == float16 ? 4e-3 : 2e-6);
      }
    }
  }
}

TEST(Scan, TypesAndFlattening) {
  EXPECT_EQ(cumsum(ones({3}, bool_)).dtype(), int32);
  EXPECT_EQ(cumprod(ones({3}, bool_)).dtype(), bool_);
  EXPECT_EQ(cumsum(ones({3}, uint8)).dtype(), uint8);
  EXPECT_EQ(cumsum(ones({3}, uint8), 0, false, true, int64).dtype(), int64);
  EXPECT_EQ(logcumsumexp(ones({3}, int32)).dtype(), float32);
  EXPECT_EQ(cumsum(ones({2, 3})).shape(), Shape({6}));
  EXPECT_EQ(values_of(cumsum(ones({2, 3})))[5], 6.0f);
  EXPECT_EQ(cumsum(zeros({0, 3}), 0).shape(), Shape({0, 3}));
  EXPECT_THROW(cumsum(ones({3}), 1), std::invalid_argument);
}

TEST(Scan, LongSumsStayAccurate) {
  constexpr int kCount = 1 << 22;
  array last =
      slice(cumsum(full({kCount}, array(0.1f))), {kCount - 1}, {kCount});
  EXPECT_NEAR(last.item<float>() / (double(0.1f) * kCount), 1.0, 1e-6);
}

TEST(Scan, Derivatives) {
  array x = array({1.5f, -2.0f, 0.5f, 3.0f, -1.0f});
  array with_zeros = array({1.5f, 0.0f, 0.5f, 0.0f, -1.0f});
  array g = array({1.0f, -2.0f, 0.5f, 4.0f, 3.0f});
  using Unary = std::function<array(const array&)>;
  auto check = [&](const Unary& f, const array& at) {
    auto many = [&](const std::vector<array>& in) {
      return std::vector<array>{f(in[0])};
    };
    std::vector<float> got = values_of(vjp(many, {at}, {g}).second[0]);
    array wide = astype(at, float64);
    for (int i = 0; i < 5; ++i) {
      array step = multiply(
          astype(equal(arange(5), array(i)), float64), array(1e-4, float64));
      array change = subtract(f(add(wide, step)), f(subtract(wide, step)));
      // What an excluded first element gives does not change.
      change = where(isnan(change), array(0.0f, float64), change);
      float slope = sum(multiply(change, g)).item<float>() / 2e-4f;
      EXPECT_NEAR(got[i], slope, 2e-3) << "at " << i;
    }
  };
  for (bool reverse : {false, true}) {
    for (bool inclusive : {false, true}) {
      SCOPED_TRACE(testing::Message() << reverse << inclusive);
      auto flags = [&](auto f) {
        return [=](const array& a) { return f(a, 0, reverse, inclusive); };
      };
      check(flags([](const auto&... a) { return cumsum(a...); }), x);
      check(flags([](const auto&... a) { return cumprod(a...); }), x);
      check(flags([](const auto&... a) { return cumprod(a...); }), with_zeros);
      check(flags([](const auto&... a) { return cummax(a...); }), x);
      check(flags([](const auto&... a) { return cummin(a...); }), x);
      check(flags([](const auto&... a) { return logcumsumexp(a...); }), x);
    }
  }
}

TEST(Scan, Batches) {
  array x = numbers({4, 6}, float32);
  auto f = [](const array& a) { return cumsum(a, 0, true, false); };
  array got = vmap(f, 1, 1)(x);
  EXPECT_TRUE(all(equal(got, cumsum(x, 0, true, false))).item<bool>());
}

}  // namespace mlx::core
