// Quantized matrices on raw pointers against codes read bit by bit and sums in
// double: every width, group size and type of scale, both orientations, row
// counts on both sides of each change of kernel, sizes that end inside a tile.
#include "backend/cpu/qmm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace mlx::core;
using namespace mlx::core::cpu;

/// Numbers kept in one of the float types.
class Numbers {
 public:
  Numbers(Dtype type, size_t size) : type_(type), bytes_(size * type.size()) {}
  void* data() { return bytes_.data(); }
  void set(size_t i, float x) {
    if (type_ == float16) {
      as<float16_t>()[i] = float16_t(x);
    } else if (type_ == bfloat16) {
      as<bfloat16_t>()[i] = bfloat16_t(x);
    } else {
      as<float>()[i] = x;
    }
  }
  float get(size_t i) {
    if (type_ == float16) {
      return as<float16_t>()[i];
    }
    return type_ == bfloat16 ? float(as<bfloat16_t>()[i]) : as<float>()[i];
  }

 private:
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.data());
  }
  Dtype type_;
  std::vector<char> bytes_;
};

/// A random matrix, quantized, and the numbers its codes stand for.
struct Quantized {
  int64_t rows, cols;
  int bits, group_size;
  Dtype type;
  Numbers w, scales, biases;
  std::vector<uint32_t> codes;
  std::vector<double> numbers;

  Quantized(int64_t r, int64_t c, int b, int g, Dtype t, std::mt19937& random)
      : rows(r),
        cols(c),
        bits(b),
        group_size(g),
        type(t),
        w(t, size_t(r * c)),
        scales(t, size_t(r * c / g)),
        biases(t, size_t(r * c / g)),
        codes(size_t(r * c * b / 32)),
        numbers(size_t(r * c)) {
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < numbers.size(); ++i) {
      w.set(i, normal(random));
    }
    quantize(
        w.data(),
        type,
        rows * cols / group_size,
        group_size,
        bits,
        codes.data(),
        scales.data(),
        biases.data());
    for (size_t i = 0; i < numbers.size(); ++i) {
      size_t group = i / size_t(group_size);
      numbers[i] =
          code(i) * double(scales.get(group)) + double(biases.get(group));
    }
  }

  double code(size_t i) const {
    unsigned value = 0;
    for (size_t bit = 0; bit < size_t(bits); ++bit) {
      size_t at = i * size_t(bits) + bit;
      value |= (codes[at / 32] >> (at % 32) & 1) << bit;
    }
    return value;
  }

  QuantizedMatrix view() {
    return {
        codes.data(),
        scales.data(),
        biases.data(),
        type,
        bits,
        group_size,
        rows,
        cols};
  }
};

class Qmm : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int bits() const { return std::get<0>(GetParam()); }
  int group_size() const { return std::get<1>(GetParam()); }
  std::mt19937 random{3};
};

TEST_P(Qmm, QuantizesWithinOneStep) {
  for (Dtype type : {float32, float16, bfloat16}) {
    Quantized q(5, group_size() * 3, bits(), group_size(), type, random);
    for (size_t i = 0; i < q.numbers.size(); ++i) {
      double step = std::fabs(q.scales.get(i / size_t(group_size())));
      // A scale in 16 bits is off by up to epsilon, times the largest code.
      double epsilon =
          type == float32 ? 0 : (type == float16 ? 0x1p-11 : 0x1p-8);
      double bound = step * (1.01 + epsilon * (1 << bits())) +
                     epsilon * std::fabs(q.w.get(i)) + 3 * epsilon;
      ASSERT_LE(std::fabs(q.numbers[i] - q.w.get(i)), bound);
    }
  }
}

TEST_P(Qmm, DequantizesEveryCode) {
  for (Dtype type : {float32, float16, bfloat16}) {
    Quantized q(3, group_size() * 37, bits(), group_size(), type, random);
    Numbers out(float32, q.numbers.size());
    dequantize(q.view(), float32, out.data());
    for (size_t i = 0; i < q.numbers.size(); ++i) {
      ASSERT_NEAR(
          out.get(i), q.numbers[i], 1e-6 * (4 + std::fabs(q.numbers[i])))
          << i;
    }
  }
}

TEST_P(Qmm, MatchesSumsInDouble) {
  const int64_t row_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 65, 150};
  const Dtype types[] = {float32, float16, bfloat16};
  for (int64_t rows : row_counts) {
    for (bool transpose : {true, false}) {
      int64_t packed = group_size() * int64_t(1 + random() % 20);
      int64_t other = 1 + int64_t(random() % 70);
      Dtype type = types[random() % 3];
      Quantized q(other, packed, bits(), group_size(), type, random);
      int64_t depth = transpose ? packed : other;
      int64_t cols = transpose ? other : packed;
      Dtype x_type = types[random() % 3];
      int64_t stride = depth + 5;
      Numbers x(x_type, size_t(rows * stride));
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < rows * stride; ++i) {
        x.set(size_t(i), normal(random));
      }
      Numbers out(x_type, size_t(rows * cols));
      quantized_matmul(
          {.w = q.view(),
           .transpose = transpose,
           .x = x.data(),
           .row_stride = stride,
           .col_stride = 1,
           .type = x_type,
           .rows = rows,
           .out = out.data()});
      double epsilon =
          x_type == float32 ? 0x1p-23 : (x_type == float16 ? 0x1p-10 : 0x1p-8);
      for (int64_t i = 0; i < rows * cols; ++i) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < depth; ++k) {
          int64_t at = transpose ? i % cols * depth + k : k * cols + i % cols;
          double term =
              x.get(size_t(i / cols * stride + k)) * q.numbers[size_t(at)];
          sum += term;
          magnitude += std::fabs(term);
        }
        ASSERT_NEAR(
            out.get(size_t(i)),
            sum,
            3e-6 * (1 + magnitude) + epsilon * std::fabs(sum))
            << rows << " rows, transpose " << transpose << ", at " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Qmm,
    testing::Combine(
        testing::Values(2, 3, 4, 5, 6, 8), testing::Values(32, 64, 128)),
    [](const auto& info) {
      return std::to_string(std::get<0>(info.param)) + "Bits" +
             std::to_string(std::get<1>(info.param));
    });

TEST(QmmEdges, EmptyDepthGivesZeros) {
  float out[6];
  std::fill(std::begin(out), std::end(out), NAN);
  quantized_matmul(
      {.w = {nullptr, nullptr, nullptr, float32, 4, 32, 3, 0},
       .transpose = true,
       .x = nullptr,
       .row_stride = 0,
       .col_stride = 1,
       .type = float32,
       .rows = 2,
       .out = out});
  for (float x : out) {
    EXPECT_EQ(x, 0);
  }
}

}  // namespace
