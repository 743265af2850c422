// The Walsh-Hadamard transform as products with small matrices: the matrix of
// order m 2^k is the Kronecker product of factors of order 2 to 64 and m, each
// of which mixes one axis of the reshaped rows. For n = 4096 that is 2 products
// with 64 x 64 matrices: 128 multiply-adds an element at the speed of matmul.
#include "mlx/ops/hadamard.h"

#include <bit>
#include <cmath>
#include <string_view>
#include <vector>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core {

namespace {

constexpr int kLargestFactor = 64;

// Orders 20 and 28 are made of circulant blocks: the first row of each row of
// blocks; further rows shift each block by one.
constexpr std::string_view kFirstRows20[] = {
    "+----+----++--++-++-",
    "-+++++-----+--+++--+",
    "--++-+-++-+-----++++",
    "-+--+--++-+----+----"};
constexpr std::string_view kFirstRows28[] = {
    "+------++----++-+--+-+--++--",
    "--++++-+-------++--+++-+--+-",
    "-+-++-++--++--+--------++++-",
    "-++--++-+-++-+++----++------"};

float circulant(const std::string_view* first_rows, int n, int i, int j) {
  int size = n / 4;
  int column = j / size * size + (j % size - i % size + size) % size;
  return first_rows[i / size][column] == '+' ? 1.0f : -1.0f;
}

// Order 12 by Paley's second construction from the squares modulo 5, 1 and 4.
float paley(int i, int j) {
  int row = i / 2;
  int column = j / 2;
  bool lower_right = i % 2 == 1 && j % 2 == 1;
  if (row == column) {
    return i % 2 == 0 && j % 2 == 0 ? 1.0f : -1.0f;
  }
  int difference = (row - column + 5) % 5;
  bool is_square = difference == 1 || difference == 4;
  bool is_positive = row == 0 || column == 0 || is_square;
  return is_positive != lower_right ? 1.0f : -1.0f;
}

float sylvester(int i, int j) {
  return std::popcount(static_cast<unsigned>(i & j)) % 2 ? -1.0f : 1.0f;
}

array matrix(int n, Dtype dtype, StreamOrDevice s) {
  std::vector<float> values;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      values.push_back(
          n == 12   ? paley(i, j)
          : n == 20 ? circulant(kFirstRows20, n, i, j)
          : n == 28 ? circulant(kFirstRows28, n, i, j)
                    : sylvester(i, j));
    }
  }
  return astype(array(values.data(), Shape{n, n}, float32), dtype, s);
}

// n = m 2^k as factors of the Kronecker product, the first mixing elements
// that are furthest apart; nothing if n is no such number.
std::vector<int> factors_of(int n) {
  int power = n & -n;
  int m = n / power;
  std::vector<int> factors;
  if (m != 1) {
    // 12, 20 and 28 contain a factor of 4.
    if ((m != 3 && m != 5 && m != 7) || power < 4) {
      return {};
    }
    factors.push_back(4 * m);
    power /= 4;
  }
  for (; power > kLargestFactor; power /= kLargestFactor) {
    factors.push_back(kLargestFactor);
  }
  if (power > 1 || factors.empty()) {
    factors.push_back(power);
  }
  return factors;
}

}  // namespace

array hadamard_transform(
    const array& a, std::optional<float> scale, StreamOrDevice s) {
  MLX_POSTPONE("hadamard_transform", hadamard_transform(in[0], scale, s), a);
  if (a.dtype() == complex64) {
    invalid(
        "hadamard_transform",
        "type not accepted: complex64. Expected a real "
        "type.");
  }
  if (a.size() == 0) {
    invalid("hadamard_transform", "an empty array of shape ", a.shape(), ".");
  }
  int n = a.ndim() ? a.shape(-1) : 1;
  std::vector<int> factors = factors_of(n);
  if (factors.empty()) {
    invalid(
        "hadamard_transform",
        "length not accepted: ",
        n,
        ". Expected m 2^k with m one of 1, 12, 20, 28.");
  }
  Dtype dtype = issubdtype(a.dtype(), inexact) ? a.dtype() : float32;
  Dtype compute = dtype == float64 ? float64 : float32;
  array x = astype(a, compute, s);
  int before = static_cast<int>(a.size() / n);
  int after = n;
  for (int factor : factors) {
    after /= factor;
    array h = matrix(factor, compute, s);
    // Symmetric ones may stand on either side: one product of all rows is
    // faster than many by a column.
    if (after == 1) {
      x = matmul(reshape(x, {before, factor}, s), transpose(h, s), s);
    } else {
      x = matmul(h, reshape(x, {before, factor, after}, s), s);
    }
    before *= factor;
  }
  double by = scale ? double{*scale} : 1.0 / std::sqrt(double(n));
  x = multiply(x, array(by, compute), s);
  return astype(reshape(x, a.shape(), s), dtype, s);
}

}  // namespace mlx::core
