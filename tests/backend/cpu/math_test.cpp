// Vector functions of float32 against libm in double: the error in units of the
// last place, over inputs spread evenly through all 2^32 bit patterns. With
// MLX_TEST_ALL_FLOATS set every pattern is tried (about an hour).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/isa_testing.h"
#include "backend/cpu/kernels/elementwise.h"

namespace mlx::core {
namespace {

using cpu::BlockFn;
using testing::for_each_level;

constexpr double kWrong = 1e30;

/// |got - want| in units of the last place of a float near `want`.
double error_in_ulp(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) {
    return std::isnan(want) && std::isnan(got) ? 0 : kWrong;
  }
  float nearest = static_cast<float>(want);
  if (std::isinf(nearest) || std::isinf(got)) {
    // One step from the largest number to infinity counts as one unit.
    float largest = std::numeric_limits<float>::max();
    bool close = got == nearest || std::fabs(got) == largest ||
                 std::fabs(nearest) == largest;
    return close ? double(got != nearest) : kWrong;
  }
  if (want == 0 && std::signbit(got) != std::signbit(want)) {
    return kWrong;
  }
  int exponent;
  std::frexp(want, &exponent);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

double sigmoid(double x) {
  double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

double erfinv(double x) {
  double a = std::fabs(x);
  if (!(a < 1)) {
    return a == 1 ? std::copysign(INFINITY, x) : NAN;
  }
  double y = 0.87 * std::sqrt(-std::log1p(-a * a));
  for (int i = 0; i < 5; ++i) {
    double error = a < 0.5 ? std::erf(y) - a : (1 - a) - std::erfc(y);
    double step = error * 0.88622692545275801365 * std::exp(y * y);
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

struct Case {
  ElementwiseOp op;
  double (*reference)(double);
  double bound;  // ulp
};

using Op = ElementwiseOp;
const Case kCases[] = {
    {Op::exp, [](double x) { return std::exp(x); }, 1.05},
    {Op::expm1, [](double x) { return std::expm1(x); }, 0.51},
    {Op::sigmoid, sigmoid, 2.4},
    {Op::tanh, [](double x) { return std::tanh(x); }, 2.7},
    {Op::sinh, [](double x) { return std::sinh(x); }, 0.51},
    {Op::cosh, [](double x) { return std::cosh(x); }, 0.51},
    {Op::log, [](double x) { return std::log(x); }, 0.9},
    {Op::log2, [](double x) { return std::log2(x); }, 0.51},
    {Op::log10, [](double x) { return std::log10(x); }, 0.51},
    {Op::log1p, [](double x) { return std::log1p(x); }, 0.51},
    {Op::arcsinh, [](double x) { return std::asinh(x); }, 0.51},
    {Op::arccosh, [](double x) { return std::acosh(x); }, 0.51},
    {Op::arctanh, [](double x) { return std::atanh(x); }, 0.51},
    {Op::sin, [](double x) { return std::sin(x); }, 0.9},
    {Op::cos, [](double x) { return std::cos(x); }, 0.9},
    {Op::tan, [](double x) { return std::tan(x); }, 0.51},
    {Op::arcsin, [](double x) { return std::asin(x); }, 0.51},
    {Op::arccos, [](double x) { return std::acos(x); }, 0.51},
    {Op::arctan, [](double x) { return std::atan(x); }, 0.51},
    {Op::erf, [](double x) { return std::erf(x); }, 2.0},
    {Op::erfinv, erfinv, 3.2},
    {Op::sqrt, [](double x) { return std::sqrt(x); }, 0.5},
    {Op::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5},
};

class MathTest : public ::testing::TestWithParam<Case> {};

TEST_P(MathTest, ErrorWithinBound) {
  const Case& c = GetParam();
  constexpr size_t kBlock = 1024;
  uint64_t step = std::getenv("MLX_TEST_ALL_FLOATS") ? 1 : 9973;
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    BlockFn fn = find(c.op, float32, 0);
    ASSERT_NE(fn, nullptr);
    std::vector<float> x(kBlock), y(kBlock);
    double worst = 0;
    float worst_at = 0;
    for (uint64_t bits = 0; bits < (uint64_t(1) << 32);) {
      for (float& value : x) {
        value = std::bit_cast<float>(static_cast<uint32_t>(bits));
        bits += step;
      }
      const void* in = x.data();
      fn(&in, y.data(), kBlock);
      for (size_t i = 0; i < kBlock; ++i) {
        double error = error_in_ulp(y[i], c.reference(x[i]));
        if (error > worst) {
          worst = error;
          worst_at = x[i];
        }
      }
    }
    EXPECT_LE(worst, c.bound) << level << " at " << worst_at;
  });
}

TEST_P(MathTest, SpecialValues) {
  const Case& c = GetParam();
  const float values[] = {
      0.0f,        -0.0f,         1.0f,           -1.0f,     0x1p-149f,
      -0x1p-149f,  0x1p-126f,     0x1p-127f,      INFINITY,  -INFINITY,
      NAN,         3.4028235e38f, -3.4028235e38f, 88.72284f, 88.72283f,
      -87.33655f,  -103.97208f,   -104.0f,        1e6f,      -1e6f,
      16777216.0f, 0x1.921fb6p0f, 0x1.921fb6p1f,  131072.0f, 32768.0f,
      0.99999994f, -0.99999994f,  1.0000001f,     20.0f,     9.0f,
      3.92f,       0.5f};
  constexpr size_t n = std::size(values);
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    float y[n];
    const void* in = values;
    find(c.op, float32, 0)(&in, y, n);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_LE(error_in_ulp(y[i], c.reference(values[i])), c.bound)
          << level << " at " << values[i] << ": " << y[i];
    }
  });
}

// One exponent for a whole block takes shortcuts for 2, 3 and 1/2.
TEST(Power, ScalarExponent) {
  std::vector<float> x = {
      0.0f,
      -0.0f,
      1.5f,
      -1.5f,
      INFINITY,
      -INFINITY,
      NAN,
      1e20f,
      1e-30f,
      0x1p-149f,
      7.0f,
      -0.3f};
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    std::vector<float> y(x.size());
    for (float exponent : {2.0f, 3.0f, 0.5f, -1.0f, 0.0f, 2.5f}) {
      const void* in[] = {x.data(), &exponent};
      find(Op::power, float32, 2)(in, y.data(), y.size());
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_LE(error_in_ulp(y[i], std::pow(double(x[i]), exponent)), 1.5)
            << level << " " << x[i] << " to " << exponent << ": " << y[i];
      }
    }
  });
}

// A tail must give the bits that the same value gives inside a full vector.
TEST_P(MathTest, TailHasTheSameBits) {
  const Case& c = GetParam();
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    BlockFn fn = find(c.op, float32, 0);
    std::vector<float> x(67), whole(67), part(67);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = 0.013f * static_cast<float>(i + 1);
    }
    const void* in = x.data();
    fn(&in, whole.data(), x.size());
    for (size_t n = 0; n < x.size(); ++n) {
      std::fill(part.begin(), part.end(), -7.0f);
      fn(&in, part.data(), n);
      for (size_t i = 0; i < x.size(); ++i) {
        float want = i < n ? whole[i] : -7.0f;
        ASSERT_EQ(
            std::bit_cast<uint32_t>(part[i]), std::bit_cast<uint32_t>(want))
            << level << " n " << n << " i " << i;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Functions,
    MathTest,
    ::testing::ValuesIn(kCases),
    [](const ::testing::TestParamInfo<Case>& info) {
      return std::string(elementwise_info(info.param.op).name);
    });

struct BinaryCase {
  ElementwiseOp op;
  double (*reference)(double, double);
  double bound;
};

double logaddexp(double a, double b) {
  if (a == b) {
    return a + std::log(2.0);
  }
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

double python_remainder(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) {
    return std::copysign(0.0, b);
  }
  return (r < 0) != (b < 0) ? r + b : r;
}

const BinaryCase kBinaryCases[] = {
    {Op::power, [](double a, double b) { return std::pow(a, b); }, 0.51},
    {Op::arctan2, [](double a, double b) { return std::atan2(a, b); }, 0.51},
    {Op::logaddexp, logaddexp, 3.0},
    {Op::remainder, python_remainder, 0.51},
};

class BinaryMathTest : public ::testing::TestWithParam<BinaryCase> {};

TEST_P(BinaryMathTest, ErrorWithinBound) {
  const BinaryCase& c = GetParam();
  std::vector<float> grid = {
      0.0f,   -0.0f,  1.0f,    -1.0f,     2.0f,        -2.0f,        3.0f,
      -3.0f,  0.5f,   -0.5f,   INFINITY,  -INFINITY,   NAN,          1e30f,
      -1e30f, 1e-30f, -1e-30f, 0x1p-149f, 16777215.0f, -16777215.0f, 1e9f,
      -1e9f,  7.25f,  -7.25f,  0.1f,      -0.1f};
  uint32_t state = 12345;
  for (int i = 0; i < 300; ++i) {
    state = state * 1664525u + 1013904223u;
    grid.push_back((static_cast<float>(state >> 8) / 0x1p24f - 0.5f) * 40);
  }
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    BlockFn fn = find(c.op, float32, 1);  // a is one number
    std::vector<float> y(grid.size());
    for (float a : grid) {
      const void* in[] = {&a, grid.data()};
      fn(in, y.data(), y.size());
      for (size_t i = 0; i < y.size(); ++i) {
        double want = c.reference(a, grid[i]);
        // logaddexp: where the sum cancels, units of the larger operand.
        double larger = std::fabs(std::fmax(a, grid[i]));
        if (c.op == Op::logaddexp && std::fabs(want) < larger) {
          ASSERT_NEAR(y[i], want, 2.0 * larger * 0x1p-23) << level;
          continue;
        }
        ASSERT_LE(error_in_ulp(y[i], want), c.bound)
            << level << " " << a << ", " << grid[i] << ": " << y[i]
            << " instead of " << want;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Functions,
    BinaryMathTest,
    ::testing::ValuesIn(kBinaryCases),
    [](const ::testing::TestParamInfo<BinaryCase>& info) {
      return std::string(elementwise_info(info.param.op).name);
    });

}  // namespace
}  // namespace mlx::core
