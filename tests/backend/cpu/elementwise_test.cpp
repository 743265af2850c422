// Block routines against plain scalar code: integer arithmetic of every width,
// comparisons and NaN, bool, complex numbers, scalar operands, tails, in place.
#include "backend/cpu/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/cpu/isa_testing.h"

namespace mlx::core {
namespace {

using cpu::BlockFn;
using testing::for_each_level;
using Op = ElementwiseOp;

template <typename T>
std::vector<T> sample_integers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {
      0,
      1,
      2,
      3,
      5,
      7,
      8,
      31,
      63,
      100,
      Limits::max(),
      T(Limits::max() - 1),
      Limits::min(),
      T(Limits::min() + 1),
      T(-1),
      T(-2),
      T(-3),
      T(-7)};
  uint64_t state = 88172645463325252u;
  while (values.size() < 83) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    values.push_back(static_cast<T>(state));
  }
  return values;
}

// Exact values by way of 128-bit integers, cut to T.
template <typename T>
T reference(Op op, T a, T b) {
  __int128 x = a, y = b;
  constexpr int kBits = sizeof(T) * 8;
  bool inside = std::make_unsigned_t<T>(b) < kBits;
  __int128 quotient = y == 0 ? 0 : x / y;
  if (y != 0 && x % y != 0 && (x < 0) != (y < 0)) {
    --quotient;
  }
  switch (op) {
    case Op::add:
      return T(x + y);
    case Op::subtract:
      return T(x - y);
    case Op::multiply:
      return T(static_cast<unsigned __int128>(x) * y);
    case Op::floor_divide:
      return T(quotient);
    case Op::remainder:
      return y == 0 ? T(0) : T(x - quotient * y);
    case Op::power: {
      if (y < 0) {
        return 0;
      }
      uint64_t result = 1, base = uint64_t(x);
      for (uint64_t n = uint64_t(y); n; n >>= 1) {
        result = n & 1 ? result * base : result;
        base *= base;
      }
      return T(result);
    }
    case Op::maximum:
      return std::max(a, b);
    case Op::minimum:
      return std::min(a, b);
    case Op::bitwise_and:
      return a & b;
    case Op::bitwise_or:
      return a | b;
    case Op::bitwise_xor:
      return a ^ b;
    case Op::left_shift:
      return inside ? T(uint64_t(x) << int(b)) : T(0);
    case Op::right_shift:
      return inside ? T(a >> int(b)) : T(a < 0 ? -1 : 0);
    default:
      ADD_FAILURE() << "no reference";
      return 0;
  }
}

template <typename T>
class IntegerTest : public ::testing::Test {};
using Integers = ::testing::Types<
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
    int8_t,
    int16_t,
    int32_t,
    int64_t>;
TYPED_TEST_SUITE(IntegerTest, Integers);

TYPED_TEST(IntegerTest, Binary) {
  using T = TypeParam;
  auto values = sample_integers<T>();
  const Op ops[] = {
      Op::add,
      Op::subtract,
      Op::multiply,
      Op::floor_divide,
      Op::remainder,
      Op::power,
      Op::maximum,
      Op::minimum,
      Op::bitwise_and,
      Op::bitwise_or,
      Op::bitwise_xor,
      Op::left_shift,
      Op::right_shift};
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    for (Op op : ops) {
      BlockFn fn = find(op, TypeToDtype<T>(), 2);
      ASSERT_NE(fn, nullptr);
      std::vector<T> y(values.size());
      for (T b : values) {
        const void* in[] = {values.data(), &b};
        fn(in, y.data(), y.size());
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_EQ(y[i], reference(op, values[i], b))
              << level << " " << elementwise_info(op).name << " " << +values[i]
              << ", " << +b;
        }
      }
    }
  });
}

TYPED_TEST(IntegerTest, UnaryAndComparison) {
  using T = TypeParam;
  auto a = sample_integers<T>();
  std::vector<T> b(a.rbegin(), a.rend());
  b[5] = a[5];
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    auto run = [&](Op op, auto result) {
      std::vector<decltype(result)> y(a.size());
      const void* in[] = {a.data(), b.data()};
      find(op, TypeToDtype<T>(), 0)(in, y.data(), y.size());
      return y;
    };
    auto negative = run(Op::negative, T());
    auto absolute = run(Op::abs, T());
    auto sign = run(Op::sign, T());
    auto square = run(Op::square, T());
    auto invert = run(Op::bitwise_invert, T());
    auto floor = run(Op::floor, T());
    auto less = run(Op::less, uint8_t());
    auto equal = run(Op::equal, uint8_t());
    auto logical_not = run(Op::logical_not, uint8_t());
    auto logical_and = run(Op::logical_and, uint8_t());
    for (size_t i = 0; i < a.size(); ++i) {
      __int128 x = a[i];
      EXPECT_EQ(negative[i], T(-x)) << level;
      EXPECT_EQ(absolute[i], T(x < 0 ? -x : x)) << level;
      EXPECT_EQ(sign[i], T((x > 0) - (x < 0))) << level;
      EXPECT_EQ(square[i], T(uint64_t(x) * uint64_t(x))) << level;
      EXPECT_EQ(invert[i], T(~x)) << level;
      EXPECT_EQ(floor[i], a[i]) << level;
      EXPECT_EQ(less[i], a[i] < b[i]) << level;
      EXPECT_EQ(equal[i], a[i] == b[i]) << level;
      EXPECT_EQ(logical_not[i], a[i] == 0) << level;
      EXPECT_EQ(logical_and[i], a[i] != 0 && b[i] != 0) << level;
    }
  });
}

template <typename T>
class RealTest : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RealTest, Reals);

template <typename T>
Dtype real_dtype() {
  return sizeof(T) == 4 ? float32 : float64;
}

template <typename T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) ||
         (a == b && std::signbit(a) == std::signbit(b));
}

TYPED_TEST(RealTest, NanAndRounding) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T inf = std::numeric_limits<T>::infinity();
  std::vector<T> a = {nan,     1,   nan,  -0.5, 0.5, 1.5, 2.5, -2.5, inf, -inf,
                      T(-0.0), 3.7, -3.7, 7,    -7,  7,   -7,  1,    0,   1.0};
  std::vector<T> b = {1, nan, nan, 0.5, -0.5, 2,  2,  2, 1, inf,
                      0, 1,   1,   2,   2,    -2, -2, 0, 0, T(0.1)};
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    auto run = [&](Op op, auto result) {
      std::vector<decltype(result)> y(a.size());
      const void* in[] = {a.data(), b.data()};
      find(op, real_dtype<T>(), 0)(in, y.data(), y.size());
      return y;
    };
    auto maximum = run(Op::maximum, T());
    auto minimum = run(Op::minimum, T());
    auto equal = run(Op::equal, uint8_t());
    auto not_equal = run(Op::not_equal, uint8_t());
    auto equal_nan = run(Op::equal_nan, uint8_t());
    auto greater_equal = run(Op::greater_equal, uint8_t());
    auto round = run(Op::round, T());
    auto trunc = run(Op::trunc, T());
    auto sign = run(Op::sign, T());
    auto floor_divide = run(Op::floor_divide, T());
    auto remainder = run(Op::remainder, T());
    auto reciprocal = run(Op::reciprocal, T());
    for (size_t i = 0; i < a.size(); ++i) {
      T x = a[i], y = b[i];
      bool nans = std::isnan(x) || std::isnan(y);
      EXPECT_TRUE(same(maximum[i], nans ? nan : x > y ? x : y)) << level << i;
      EXPECT_TRUE(same(minimum[i], nans ? nan : x < y ? x : y)) << level << i;
      EXPECT_EQ(equal[i], x == y) << level;
      EXPECT_EQ(not_equal[i], x != y) << level;
      EXPECT_EQ(greater_equal[i], x >= y) << level;
      EXPECT_EQ(equal_nan[i], x == y || (std::isnan(x) && std::isnan(y)))
          << level;
      EXPECT_TRUE(same(round[i], std::nearbyint(x))) << level << " " << x;
      EXPECT_TRUE(same(trunc[i], std::trunc(x))) << level << " " << x;
      T s = x > 0 ? T(1) : x < 0 ? T(-1) : x + T(0);  // not -0
      EXPECT_TRUE(same(sign[i], s)) << level << " " << x;
      EXPECT_TRUE(same(reciprocal[i], T(1) / x)) << level << " " << x;
      if (std::isfinite(x) && std::isfinite(y) && y != 0) {
        // The identity both have to hold, and the sign of the divisor.
        EXPECT_NEAR(floor_divide[i] * y + remainder[i], x, 1e-6) << level;
        EXPECT_EQ(floor_divide[i], std::floor(floor_divide[i])) << level;
        EXPECT_EQ(std::signbit(remainder[i]), std::signbit(y)) << level;
        EXPECT_LT(std::fabs(remainder[i]), std::fabs(y)) << level;
      }
    }
    // 1 // 0.1 is 9 in double: 0.1 is a little more than a tenth.
    EXPECT_EQ(floor_divide[19], T(9));
  });
}

TEST(Elementwise, Bool) {
  const bool a[] = {false, false, true, true}, b[] = {false, true, false, true};
  const std::vector<std::pair<Op, std::vector<bool>>> truth = {
      {Op::add, {false, true, true, true}},
      {Op::subtract, {false, true, true, false}},
      {Op::multiply, {false, false, false, true}},
      {Op::floor_divide, {false, false, false, true}},
      {Op::remainder, {false, false, false, false}},
      {Op::power, {true, false, true, true}},
      {Op::maximum, {false, true, true, true}},
      {Op::minimum, {false, false, false, true}},
      {Op::bitwise_xor, {false, true, true, false}},
      {Op::logical_or, {false, true, true, true}},
      {Op::less, {false, true, false, false}},
      {Op::bitwise_invert, {true, true, false, false}},
      {Op::logical_not, {true, true, false, false}},
  };
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    for (const auto& [op, want] : truth) {
      bool y[4];
      const void* in[] = {a, b};
      find(op, bool_, 0)(in, y, 4);
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(y[i], want[i]) << level << elementwise_info(op).name << i;
        EXPECT_LE(reinterpret_cast<uint8_t&>(y[i]), 1);
      }
    }
    EXPECT_EQ(find(Op::negative, bool_, 0), nullptr);
    EXPECT_EQ(find(Op::left_shift, bool_, 0), nullptr);
    EXPECT_EQ(find(Op::exp, int32, 0), nullptr);
    EXPECT_EQ(find(Op::bitwise_and, float32, 0), nullptr);
    EXPECT_EQ(find(Op::floor, complex64, 0), nullptr);
  });
}

TEST(Elementwise, Complex) {
  using Z = std::complex<double>;
  std::vector<complex64_t> a = {
      {1, 2},
      {-3, 0.5},
      {0.25, -0.75},
      {2, 0},
      {0, 3},
      {-1, -1},
      {1e-5f, 1e-6f}};
  std::vector<complex64_t> b = {
      {0.5, -1}, {2, 2}, {-0.5, 0.25}, {3, 0}, {1, 1}, {-1, -1}, {0, 1}};
  auto near = [](complex64_t got, Z want) {
    return std::abs(Z(got.real(), got.imag()) - want) <= 4e-7 * std::abs(want);
  };
  const std::vector<std::pair<Op, Z (*)(Z, Z)>> functions = {
      {Op::multiply, [](Z x, Z y) { return x * y; }},
      {Op::divide, [](Z x, Z y) { return x / y; }},
      {Op::power, [](Z x, Z y) { return std::pow(x, y); }},
      {Op::logaddexp,
       [](Z x, Z y) { return std::log(std::exp(x) + std::exp(y)); }},
      {Op::exp, [](Z x, Z) { return std::exp(x); }},
      {Op::log, [](Z x, Z) { return std::log(x); }},
      {Op::log10, [](Z x, Z) { return std::log10(x); }},
      {Op::sqrt, [](Z x, Z) { return std::sqrt(x); }},
      {Op::rsqrt, [](Z x, Z) { return 1.0 / std::sqrt(x); }},
      {Op::sin, [](Z x, Z) { return std::sin(x); }},
      {Op::arctan, [](Z x, Z) { return std::atan(x); }},
      {Op::tanh, [](Z x, Z) { return std::tanh(x); }},
      {Op::arccosh, [](Z x, Z) { return std::acosh(x); }},
      {Op::sign, [](Z x, Z) { return x / std::abs(x); }},
      {Op::conjugate, [](Z x, Z) { return std::conj(x); }},
      {Op::square, [](Z x, Z) { return x * x; }},
  };
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    const void* in[] = {a.data(), b.data()};
    std::vector<complex64_t> y(a.size());
    for (const auto& [op, f] : functions) {
      find(op, complex64, 0)(in, y.data(), y.size());
      for (size_t i = 0; i < a.size(); ++i) {
        Z want = f(Z(a[i].real(), a[i].imag()), Z(b[i].real(), b[i].imag()));
        EXPECT_TRUE(near(y[i], want))
            << level << " " << elementwise_info(op).name << i << " "
            << y[i].real() << " " << y[i].imag() << " " << want;
      }
    }
    std::vector<float> real(a.size());
    find(Op::abs, complex64, 0)(in, real.data(), a.size());
    EXPECT_FLOAT_EQ(real[0], std::sqrt(5.0f));
    find(Op::imag, complex64, 0)(in, real.data(), a.size());
    EXPECT_EQ(real[1], 0.5f);
    std::vector<uint8_t> less(a.size());
    find(Op::less, complex64, 0)(in, less.data(), a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(less[i], a[i] < b[i]) << level << i;
    }
    find(Op::log1p, complex64, 0)(in, y.data(), a.size());
    // x - x^2/2 + y^2/2 for small x + iy.
    EXPECT_NEAR(y[6].real(), 1e-5 - 0.5e-10 + 0.5e-12, 2e-12);
  });
}

// Each operation with scalar operands and in place agrees with itself on full
// arrays, for all lengths around a vector.
TEST(Elementwise, ScalarsAndInPlace) {
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    for (int row = 0; row < kNumElementwiseOps; ++row) {
      Op op = static_cast<Op>(row);
      BlockFn full = find(op, float32, 0);
      if (!full || elementwise_info(op).arity != 2) {
        continue;
      }
      Dtype result = elementwise_result_dtype(op, float32);
      for (size_t n : {size_t(1), size_t(7), size_t(16), size_t(83)}) {
        std::vector<float> a(n), b(n, 1.75f), want(n), got(n);
        for (size_t i = 0; i < n; ++i) {
          a[i] = 0.37f * static_cast<float>(i) - 2.0f;
        }
        size_t bytes = n * result.size();
        const void* arrays[] = {a.data(), b.data()};
        full(arrays, want.data(), n);
        find(op, float32, 2)(arrays, got.data(), n);
        EXPECT_EQ(std::memcmp(got.data(), want.data(), bytes), 0)
            << level << elementwise_info(op).name << n;
        const void* swapped[] = {b.data(), a.data()};
        full(swapped, want.data(), n);
        find(op, float32, 1)(swapped, got.data(), n);
        EXPECT_EQ(std::memcmp(got.data(), want.data(), bytes), 0)
            << level << elementwise_info(op).name << n;
        full(swapped, a.data(), n);  // over its own operand
        EXPECT_EQ(std::memcmp(a.data(), want.data(), bytes), 0)
            << level << elementwise_info(op).name << n;
      }
    }
  });
}

// The routines of the 16-bit floats give the bits of the float32 routine on
// widened operands, rounded.
void check_half(Dtype half) {
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    auto convert = cpu::convert_block.levels[level[1] - '2'];
    constexpr size_t n = 1003;
    std::vector<uint16_t> a(n), b(n), want(n), got(n);
    std::vector<float> x(n), y(n), z(n);
    for (size_t i = 0; i < n; ++i) {
      a[i] = static_cast<uint16_t>(i * 65);
      b[i] = static_cast<uint16_t>(0x3c00 + i * 7);
    }
    const void* halves[] = {a.data(), b.data()};
    const void* floats[] = {x.data(), y.data()};
    convert(half, float32)(&halves[0], x.data(), n);
    convert(half, float32)(&halves[1], y.data(), n);
    int rows = 0;
    for (int row = 0; row < kNumElementwiseOps; ++row) {
      Op op = static_cast<Op>(row);
      BlockFn fn = find(op, half, 0);
      if (!fn || op == Op::select) {
        continue;
      }
      ++rows;
      Dtype result = elementwise_result_dtype(op, half);
      const void* wide = z.data();
      if (result == bool_) {
        find(op, float32, 0)(floats, want.data(), n);
      } else {
        find(op, float32, 0)(floats, z.data(), n);
        convert(float32, half)(&wide, want.data(), n);
      }
      for (size_t count : {size_t(1), size_t(9), n}) {
        fn(halves, got.data(), count);
        ASSERT_EQ(
            std::memcmp(got.data(), want.data(), count * result.size()), 0)
            << level << " " << elementwise_info(op).name << " " << count;
      }
    }
    EXPECT_GE(rows, 25);
    EXPECT_EQ(find(Op::power, half, 0), nullptr);
  });
}

TEST(Elementwise, HalfThroughFloat) {
  check_half(float16);
  check_half(bfloat16);
}

TEST(Elementwise, UnaryOfOneElement) {
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    for (int row = 0; row < kNumElementwiseOps; ++row) {
      Op op = static_cast<Op>(row);
      for (Dtype t : {float32, float64, bfloat16, int32, complex64, bool_}) {
        BlockFn one = find(op, t, 1);
        if (!one || elementwise_info(op).arity != 1) {
          continue;
        }
        uint64_t bits = t == bool_ ? 1 : 0x3f2000003f200001;
        char want[8], got[75 * 8];
        const void* in = &bits;
        find(op, t, 0)(&in, want, 1);
        one(&in, got, 75);
        size_t size = elementwise_result_dtype(op, t).size();
        for (int i = 0; i < 75; ++i) {
          ASSERT_EQ(std::memcmp(got + i * size, want, size), 0)
              << level << " " << elementwise_info(op).name;
        }
      }
    }
  });
}

template <typename T>
void check_select(Dtype dtype) {
  for_each_level(cpu::elementwise_block, [&](auto find, std::string level) {
    for (size_t n : {size_t(1), size_t(5), size_t(64), size_t(131)}) {
      std::vector<uint8_t> condition(n);
      std::vector<T> x(n), y(n), got(n);
      for (size_t i = 0; i < n; ++i) {
        condition[i] = i % 3 == 0;
        x[i] = static_cast<T>(i);
        y[i] = static_cast<T>(100 + i);
      }
      for (unsigned mask = 0; mask < 8; ++mask) {
        const void* in[] = {condition.data(), x.data(), y.data()};
        find(Op::select, dtype, mask)(in, got.data(), n);
        for (size_t i = 0; i < n; ++i) {
          bool c = condition[mask & 1 ? 0 : i];
          T want = c ? x[mask & 2 ? 0 : i] : y[mask & 4 ? 0 : i];
          ASSERT_EQ(got[i], want) << level << " mask " << mask << " i " << i;
        }
      }
    }
  });
}

TEST(Elementwise, Select) {
  check_select<int8_t>(int8);
  check_select<uint16_t>(bfloat16);
  check_select<float>(float32);
  check_select<double>(float64);
}

}  // namespace
}  // namespace mlx::core
