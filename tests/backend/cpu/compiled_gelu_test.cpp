// Gelus of all forms that are one stage of a chain, and of some that are not,
// give the bits of their single operations.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/compiled_testing.h"

namespace mlx::core {
namespace {

using namespace testing;
using Op = ElementwiseOp;

// factor * (added + erf(x first scale)) last share
FusedProgram gelu_form(Op first, Op last, bool of_itself) {
  Program p;
  int x = p.input(float32);
  int factor = of_itself ? x : p.input(float32);
  int scale = p.input(float32, Extent::one);
  int added = p.input(float32, Extent::one);
  int share = p.input(float32, Extent::one);
  int y = p.step(Op::erf, {p.step(first, {x, scale})});
  y = p.step(Op::multiply, {factor, p.step(Op::add, {added, y})});
  p.output(p.step(last, {y, share}));
  return p.get();
}

void expect_bits(
    Op first, Op last, const array& x, const array* factor, float share) {
  std::vector<array> inputs = {x};
  if (factor) {
    inputs.push_back(*factor);
  }
  inputs.insert(inputs.end(), {array(1.4142135f), array(1.0f), array(share)});
  expect_fused_is_single(gelu_form(first, last, !factor), inputs);
}

TEST(CompiledGelu, FormsAndLengths) {
  std::mt19937 rng(1);
  for (int n : {1, 31, 32, 64, 1000, 5000}) {
    array x = random_array(rng, {n}, float32);
    array factor = random_array(rng, {n}, float32);
    for (Op first : {Op::divide, Op::multiply, Op::subtract}) {
      for (Op last : {Op::divide, Op::multiply, Op::add}) {
        for (float share : {2.0f, 0.3f, -0.25f, 0.0f}) {
          SCOPED_TRACE(std::to_string(n) + " by " + std::to_string(share));
          expect_bits(first, last, x, nullptr, share);
          expect_bits(first, last, x, &factor, share);
        }
      }
    }
  }
}

// Numbers of all exponents, subnormal ones and not-a-number among them.
TEST(CompiledGelu, NumbersOfAllSizes) {
  std::vector<float> numbers(1 << 20);
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint32_t bits = static_cast<uint32_t>(i * 4093);
    std::memcpy(&numbers[i], &bits, sizeof(bits));
  }
  array x(numbers.begin(), {1 << 20}, float32);
  expect_bits(Op::divide, Op::divide, x, nullptr, 2.0f);
  expect_bits(Op::multiply, Op::divide, x, nullptr, 3.0f);
}

}  // namespace
}  // namespace mlx::core
