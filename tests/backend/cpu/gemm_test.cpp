// The matrix product on raw pointers against sums in double: every element
// type, layouts with padding, transposes, both strides, shared operands, sizes
// around the tiles, empty depth, alpha and beta, and any number of threads.
#include "backend/cpu/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/threads.h"

namespace {

using namespace mlx::core;
using namespace mlx::core::cpu;

enum class Layout { padded, transposed, strided, contiguous };

template <typename T>
struct Traits;
template <>
struct Traits<float> {
  static constexpr Dtype type = float32;
  static constexpr double epsilon = 0x1p-23, sum_epsilon = 0x1p-20;
  using Wide = double;
};
template <>
struct Traits<double> {
  static constexpr Dtype type = float64;
  static constexpr double epsilon = 0x1p-53, sum_epsilon = 0x1p-50;
  using Wide = long double;
};
template <>
struct Traits<float16_t> {
  static constexpr Dtype type = float16;
  static constexpr double epsilon = 0x1p-11, sum_epsilon = 0x1p-21;
  using Wide = double;
};
template <>
struct Traits<bfloat16_t> {
  static constexpr Dtype type = bfloat16;
  static constexpr double epsilon = 0x1p-8, sum_epsilon = 0x1p-21;
  using Wide = double;
};
template <>
struct Traits<std::complex<float>> {
  static constexpr Dtype type = complex64;
  static constexpr double epsilon = 0x1p-22, sum_epsilon = 0x1p-20;
  using Wide = std::complex<double>;
};

std::complex<double> widen(std::complex<float> x) {
  return {x.real(), x.imag()};
}
template <typename T>
double widen(T x) {
  return static_cast<double>(x);
}

/// A batch of matrices in one of the layouts, filled with normal numbers.
template <typename T>
struct Matrices {
  std::vector<T> data;
  int64_t row_stride, col_stride, batch_stride;

  Matrices(
      int64_t rows,
      int64_t cols,
      int64_t batch,
      Layout layout,
      bool shared,
      std::mt19937& random) {
    int64_t padded_rows = rows + 2, padded_cols = cols + 3;
    switch (layout) {
      case Layout::padded:
        row_stride = padded_cols, col_stride = 1;
        break;
      case Layout::transposed:
        row_stride = 1, col_stride = padded_rows;
        break;
      case Layout::strided:
        row_stride = 2 * padded_cols, col_stride = 2;
        break;
      case Layout::contiguous:
        row_stride = cols, col_stride = 1;
        break;
    }
    int64_t size = 2 * padded_rows * padded_cols;
    if (layout == Layout::contiguous) {
      size = rows * cols;
    }
    batch_stride = shared ? 0 : size;
    data.resize(size_t(size * batch));
    std::normal_distribution<float> normal;
    for (T& x : data) {
      if constexpr (std::is_same_v<T, std::complex<float>>) {
        x = T(normal(random), normal(random));
      } else {
        x = T(normal(random));
      }
    }
  }

  const T& at(int64_t batch, int64_t row, int64_t col) const {
    return data[size_t(
        batch * batch_stride + row * row_stride + col * col_stride)];
  }
};

struct Case {
  int64_t rows, cols, depth, batch;
  Layout a, b, c;
  bool share_a, share_b, share_c;
  double alpha, beta;
};

Case random_case(std::mt19937& random) {
  const int64_t sizes[] = {
      1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 33, 64, 100, 130, 257, 300, 600};
  auto size = [&] { return sizes[random() % std::size(sizes)]; };
  auto layout = [&] { return static_cast<Layout>(random() % 4); };
  auto one_in = [&](unsigned n) { return random() % n == 0; };
  return {
      .rows = size(),
      .cols = size(),
      .depth = one_in(20) ? 0 : size(),
      .batch = int64_t(1 + random() % 5),
      .a = layout(),
      .b = layout(),
      .c = layout(),
      .share_a = one_in(4),
      .share_b = one_in(3),
      .share_c = one_in(3),
      .alpha = one_in(2) ? 1 : 0.5,
      .beta = one_in(2) ? 0 : 1.5};
}

template <typename T>
void expect_product(
    const Case& t,
    const Matrices<T>& a,
    const Matrices<T>& b,
    const Matrices<T>& c,
    const std::vector<T>& out,
    std::mt19937& random) {
  using Wide = typename Traits<T>::Wide;
  int64_t count = t.batch * t.rows * t.cols;
  for (int64_t n = 0; n < std::min<int64_t>(count, 400); ++n) {
    int64_t i = count <= 400 ? n : int64_t(random() % uint64_t(count));
    int64_t col = i % t.cols, row = i / t.cols % t.rows;
    int64_t batch = i / t.cols / t.rows;
    Wide sum{};
    double magnitude = 0;
    for (int64_t k = 0; k < t.depth; ++k) {
      Wide term =
          Wide(widen(a.at(batch, row, k))) * Wide(widen(b.at(batch, k, col)));
      sum += term;
      magnitude += double(std::abs(term));
    }
    sum *= t.alpha;
    if (t.beta != 0) {
      sum += Wide(t.beta) * Wide(widen(c.at(batch, row, col)));
    }
    double error = double(std::abs(Wide(widen(out[size_t(i)])) - sum));
    double bound = magnitude * Traits<T>::sum_epsilon +
                   double(std::abs(sum)) * Traits<T>::epsilon + 0x1p-24;
    ASSERT_LE(error, bound)
        << t.rows << " x " << t.cols << " x " << t.depth << " batch " << batch
        << " at " << row << ", " << col;
  }
}

template <typename T>
std::vector<T> product(
    const Case& t,
    const Matrices<T>& a,
    const Matrices<T>& b,
    const Matrices<T>& c) {
  std::vector<T> out(size_t(t.batch * t.rows * t.cols), T(NAN));
  gemm(
      {.type = Traits<T>::type,
       .rows = t.rows,
       .cols = t.cols,
       .depth = t.depth,
       .a = {a.data.data(), a.row_stride, a.col_stride, {&a.batch_stride, 1}},
       .b = {b.data.data(), b.row_stride, b.col_stride, {&b.batch_stride, 1}},
       .out = out.data(),
       .alpha = t.alpha,
       .beta = t.beta,
       .c = {c.data.data(), c.row_stride, c.col_stride, {&c.batch_stride, 1}},
       .batch_shape = {&t.batch, 1}});
  return out;
}

template <typename T>
class Gemm : public testing::Test {};
using Types =
    testing::Types<float, double, float16_t, bfloat16_t, std::complex<float>>;
TYPED_TEST_SUITE(Gemm, Types);

TYPED_TEST(Gemm, MatchesSumsInDouble) {
  std::mt19937 random(20);
  for (int i = 0; i < 120; ++i) {
    Case t = random_case(random);
    Matrices<TypeParam> a(t.rows, t.depth, t.batch, t.a, t.share_a, random);
    Matrices<TypeParam> b(t.depth, t.cols, t.batch, t.b, t.share_b, random);
    Matrices<TypeParam> c(t.rows, t.cols, t.batch, t.c, t.share_c, random);
    expect_product(t, a, b, c, product(t, a, b, c), random);
  }
}

TYPED_TEST(Gemm, DoesNotDependOnThreads) {
  std::mt19937 random(21);
  Case t = random_case(random);
  for (auto [rows, cols, depth] :
       {std::array<int64_t, 3>{700, 300, 600}, {3, 900, 700}, {900, 5, 300}}) {
    t.rows = rows, t.cols = cols, t.depth = depth, t.batch = 2;
    Matrices<TypeParam> a(rows, depth, 2, t.a, false, random);
    Matrices<TypeParam> b(depth, cols, 2, t.b, false, random);
    Matrices<TypeParam> c(rows, cols, 2, t.c, false, random);
    set_num_threads(1);
    auto alone = product(t, a, b, c);
    set_num_threads(5);
    auto together = product(t, a, b, c);
    set_num_threads(0);
    EXPECT_EQ(
        std::memcmp(
            alone.data(), together.data(), alone.size() * sizeof(TypeParam)),
        0);
  }
}

TEST(GemmEdges, KeepsNanAndInfinity) {
  std::vector<float> a(40 * 50, 1), b(50 * 40, 1), out(40 * 40);
  a[3 * 50 + 49] = NAN;
  b[7 * 40 + 5] = INFINITY;
  gemm(
      {.type = float32,
       .rows = 40,
       .cols = 40,
       .depth = 50,
       .a = {a.data(), 50, 1},
       .b = {b.data(), 40, 1},
       .out = out.data()});
  EXPECT_TRUE(std::isnan(out[3 * 40 + 39]));
  EXPECT_TRUE(std::isnan(out[3 * 40 + 5]));
  EXPECT_EQ(out[39 * 40 + 5], INFINITY);
  EXPECT_EQ(out[39 * 40 + 39], 50);
}

TEST(GemmEdges, EmptyResultTouchesNothing) {
  gemm(
      {.type = float32,
       .rows = 0,
       .cols = 4,
       .depth = 4,
       .a = {},
       .b = {},
       .out = nullptr});
  gemm(
      {.type = float32,
       .rows = 4,
       .cols = 0,
       .depth = 4,
       .a = {},
       .b = {},
       .out = nullptr});
}

}  // namespace
