// Conversion of blocks for all pairs of types against conversion of single
// values; strided moves and streaming copies.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "backend/cpu/isa_testing.h"
#include "backend/cpu/kernels/elementwise.h"

namespace mlx::core {
namespace {

using testing::for_each_level;

template <typename Fn>
void for_each_type(Fn fn) {
  fn(bool_, bool());
  fn(uint8, uint8_t());
  fn(uint16, uint16_t());
  fn(uint32, uint32_t());
  fn(uint64, uint64_t());
  fn(int8, int8_t());
  fn(int16, int16_t());
  fn(int32, int32_t());
  fn(int64, int64_t());
  fn(float16, float16_t());
  fn(float32, float());
  fn(float64, double());
  fn(bfloat16, bfloat16_t());
  fn(complex64, complex64_t());
}

template <typename To, typename From>
To convert_one(From x) {
  if constexpr (std::is_same_v<From, complex64_t>) {
    if constexpr (std::is_same_v<To, complex64_t>) {
      return x;
    } else if constexpr (std::is_same_v<To, bool>) {
      return x.real() != 0 || x.imag() != 0;
    } else {
      return convert_one<To>(x.real());
    }
  } else if constexpr (sizeof(From) == 2 && !std::is_integral_v<From>) {
    return convert_one<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (
      std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(static_cast<int64_t>(x));
  } else if constexpr (sizeof(To) == 2 && !std::is_integral_v<To>) {
    return To(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename T>
std::vector<T> sample() {
  std::vector<T> x(1100);
  for (size_t i = 0; i < x.size(); ++i) {
    double v = static_cast<double>(i % 120) * 1.03 - (i % 2 ? 60.5 : 0.0);
    if constexpr (std::is_same_v<T, bool>) {
      x[i] = i % 3 == 0;
    } else if constexpr (std::is_same_v<T, complex64_t>) {
      x[i] = i % 5 ? complex64_t(float(v), 2.0f) : complex64_t(0.0f, i % 2);
    } else if constexpr (std::is_integral_v<T>) {
      x[i] = static_cast<T>(int64_t(i) * 40503 * (i % 2 ? -1 : 1));
    } else {
      x[i] = i % 7 ? T(float(v)) : T(0.0f);
    }
  }
  return x;
}

TEST(Convert, AllPairs) {
  for_each_level(cpu::convert_block, [&](auto find, std::string level) {
    for_each_type([&](Dtype from, auto from_value) {
      using From = decltype(from_value);
      std::vector<char> source;
      auto values = sample<From>();
      source.resize(values.size() * sizeof(From));
      for (size_t i = 0; i < values.size(); ++i) {
        From v = values[i];
        std::memcpy(source.data() + i * sizeof(From), &v, sizeof(From));
      }
      for_each_type([&](Dtype to, auto to_value) {
        using To = decltype(to_value);
        for (size_t n : {size_t(0), size_t(1), size_t(13), values.size()}) {
          std::vector<char> out(values.size() * sizeof(To) + 1, 77);
          const void* in = source.data();
          find(from, to)(&in, out.data(), n);
          for (size_t i = 0; i < n; ++i) {
            To want = convert_one<To>(From(values[i]));
            ASSERT_EQ(
                std::memcmp(out.data() + i * sizeof(To), &want, sizeof(To)), 0)
                << level << " from " << int(from.val()) << " to "
                << int(to.val()) << " i " << i;
          }
          ASSERT_EQ(out[n * sizeof(To)], 77) << "wrote past the end";
        }
      });
    });
  });
}

TEST(Convert, HalfRoundingAndSpecials) {
  const float values[] = {
      0.0f,       -0.0f,          65504.0f,        65519.99f,    65520.0f,
      -1e9f,      INFINITY,       -INFINITY,       NAN,          0x1p-24f,
      0x1.8p-24f, 0x1p-25f,       0x1.000002p-25f, 0x1.ffcp-15f, 1.0009765f,
      1.0004883f, 1.00048828125f, 3.3895e38f,      0x1.01p0f,    0x1.03p0f,
      0x1p-133f,  2049.0f,        2051.0f};
  constexpr size_t n = std::size(values);
  for_each_level(cpu::convert_block, [&](auto find, std::string level) {
    const void* in = values;
    uint16_t half[n], brain[n];
    find(float32, float16)(&in, half, n);
    find(float32, bfloat16)(&in, brain, n);
    for (size_t i = 0; i < n; ++i) {
      if (std::isnan(values[i])) {
        EXPECT_EQ(half[i] & 0x7c00, 0x7c00);
        EXPECT_NE(half[i] & 0x3ff, 0);
        EXPECT_EQ(brain[i] & 0x7f80, 0x7f80);
        EXPECT_NE(brain[i] & 0x7f, 0);
        continue;
      }
      EXPECT_EQ(half[i], float16_t(values[i]).bits_) << level << values[i];
      EXPECT_EQ(brain[i], bfloat16_t(values[i]).bits_) << level << values[i];
    }
  });
}

template <typename T>
void check_moves() {
  std::vector<T> source(1000);
  std::iota(source.begin(), source.end(), T(1));
  for_each_level(cpu::gather_block, [&](auto gather, std::string level) {
    for (int64_t stride : {0, 1, 3, -2}) {
      std::vector<T> out(101, T(0));
      const T* start = source.data() + (stride < 0 ? 500 : 0);
      gather(start, stride, out.data(), 100, sizeof(T));
      for (int64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(out[i], start[i * stride]) << level << stride;
      }
      ASSERT_EQ(out[100], T(0));
    }
  });
  for_each_level(cpu::scatter_block, [&](auto scatter, std::string level) {
    for (int64_t stride : {1, 3, -2}) {
      std::vector<T> out(1000, T(0));
      T* start = out.data() + (stride < 0 ? 500 : 0);
      scatter(source.data(), start, stride, 100, sizeof(T));
      for (int64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(start[i * stride], source[i]) << level << stride;
      }
    }
  });
}

TEST(Move, GatherAndScatter) {
  check_moves<uint8_t>();
  check_moves<uint16_t>();
  check_moves<uint32_t>();
  check_moves<uint64_t>();
}

TEST(Move, CopyStreaming) {
  std::vector<char> source(5000);
  std::iota(source.begin(), source.end(), 0);
  for_each_level(cpu::copy_streaming, [&](auto copy, std::string level) {
    for (size_t offset : {0, 1, 33}) {
      for (size_t n : {0, 1, 63, 64, 200, 4095}) {
        std::vector<char> out(5000, 3);
        copy(source.data() + 5, out.data() + offset, n);
        EXPECT_EQ(std::memcmp(out.data() + offset, source.data() + 5, n), 0)
            << level;
        EXPECT_EQ(out[offset + n], 3) << level << offset << " " << n;
      }
    }
  });
}

}  // namespace
}  // namespace mlx::core
