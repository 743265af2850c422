// Fused programs without reductions give the bits of their single operations,
// in all types and layouts.
#include "backend/cpu/compiled.h"

#include <gtest/gtest.h>

#include <set>

#include "backend/cpu/compiled_testing.h"
#include "backend/cpu/threads.h"
#include "mlx/memory.h"

namespace mlx::core {
namespace {

using namespace testing;
using Op = ElementwiseOp;

TEST(Compiled, GeluOfAllFloats) {
  std::mt19937 rng(1);
  for (Dtype t : {float32, float64, float16, bfloat16}) {
    for (int n : {1, 3, 31, 64, 1000, 5000}) {
      SCOPED_TRACE(n);
      expect_fused_is_single(gelu(t), gelu_inputs(random_array(rng, {n}, t)));
    }
  }
}

TEST(Compiled, RandomProgramsOfAllTypes) {
  std::mt19937 rng(2);
  for (Dtype t : all_dtypes()) {
    for (int run = 0; run < 12; ++run) {
      SCOPED_TRACE("type " + std::to_string(static_cast<int>(t.val())));
      SCOPED_TRACE("run " + std::to_string(run));
      FusedProgram program = random_program(
          rng, t, {Extent::element, Extent::element, Extent::one}, 1 + run * 2);
      Shape shape = run % 3 == 0 ? Shape{7} : Shape{37, 91};
      std::vector<array> inputs = {
          random_array(rng, shape, t),
          random_array(rng, shape, t),
          random_array(rng, {}, t)};
      SCOPED_TRACE(Compiled(default_stream(Device::cpu), program).name());
      expect_fused_is_single(program, inputs);
    }
  }
}

TEST(Compiled, LayoutsAndBroadcasts) {
  std::mt19937 rng(3);
  Shape shape{6, 50, 70};
  for (Dtype t : {float32, int16, bfloat16, complex64}) {
    std::vector<array> layouts = {
        random_array(rng, shape, t),
        transpose(random_array(rng, {70, 50, 6}, t)),
        transpose(random_array(rng, {6, 70, 50}, t), {0, 2, 1}),
        slice(
            random_array(rng, {6, 100, 70}, t),
            {0, 0, 0},
            {6, 100, 70},
            {1, 2, 1}),
        random_array(rng, {70}, t),
        random_array(rng, {50, 1}, t),
        random_array(rng, {6, 1, 70}, t),
        random_array(rng, {1, 1, 1}, t),
        random_array(rng, {}, t),
        broadcast_to(random_array(rng, {}, t), shape),
        broadcast_to(random_array(rng, {1, 50, 1}, t), shape),
        slice(
            random_array(rng, shape, t),
            {-1, -1, -1},
            {-7, -51, -71},
            {-1, -1, -1})};
    for (array& a : layouts) {
      eval(a);
    }
    for (int run = 0; run < 40; ++run) {
      SCOPED_TRACE("run " + std::to_string(run));
      std::vector<array> inputs;
      for (int k = 0; k < 3; ++k) {
        inputs.push_back(layouts[rng() % layouts.size()]);
      }
      expect_fused_is_single(
          random_program(
              rng, t, {Extent::element, Extent::element, Extent::element}, 8),
          inputs);
    }
  }
}

TEST(Compiled, CastsOfAllPairs) {
  std::mt19937 rng(4);
  for (Dtype from : all_dtypes()) {
    for (Dtype to : all_dtypes()) {
      Program p;
      int x = p.input(from);
      int y = p.cast(x, to);
      p.output(y);
      p.output(p.cast(y, from));
      expect_fused_is_single(p.get(), {random_array(rng, {1500}, from, false)});
      expect_fused_is_single(p.get(), {random_array(rng, {1}, from, false)});
    }
  }
}

// Column-major inputs keep their layout.
TEST(Compiled, OutputsTakeTheCommonLayout) {
  std::mt19937 rng(5);
  array x = transpose(random_array(rng, {40, 30}, float32));
  eval(x);
  std::vector<array> inputs = gelu_inputs(x);
  array y = run_fused(gelu(float32), inputs)[0];
  EXPECT_EQ(y.strides(), x.strides());
  EXPECT_TRUE(y.flags().col_contiguous);
  expect_same_bits(y, run_single(gelu(float32), inputs)[0]);
}

TEST(Compiled, EmptyAndSingleElements) {
  std::mt19937 rng(6);
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{1, 1}, Shape{0}, Shape{3, 0}, Shape{0, 4}}) {
    array x = random_array(rng, shape, float16);
    expect_fused_is_single(gelu(float16), gelu_inputs(x));
  }
}

TEST(Compiled, OutputsOfSeveralShapes) {
  expect_outputs_of_several_shapes();
}

// One primitive with inputs of changing kinds: the kept plan must not be used
// for others.
TEST(Compiled, OnePrimitiveForSeveralShapes) {
  std::mt19937 rng(8);
  Program p;
  int x = p.input(float32);
  int y = p.input(float32);
  p.output(p.step(Op::power, {p.step(Op::add, {x, y}), y}));
  auto primitive =
      std::make_shared<Compiled>(default_stream(Device::cpu), p.get());
  for (const Shape& shape :
       {Shape{8, 9}, Shape{1}, Shape{9}, Shape{8, 1}, Shape{8, 9}}) {
    std::vector<array> inputs = {
        random_array(rng, {8, 9}, float32), random_array(rng, shape, float32)};
    std::vector<array> got = nodes_of(primitive, inputs);
    eval(got);
    expect_same_bits(got[0], run_single(p.get(), inputs)[0]);
  }
}

// Short cuts for scalar exponents are taken where single operations take them.
TEST(Compiled, PowersOfScalars) {
  std::mt19937 rng(9);
  for (float exponent : {2.0f, 3.0f, 0.5f, 1.7f}) {
    Program p;
    int x = p.input(float32);
    int e = p.input(float32);
    p.output(p.step(Op::power, {x, e}));
    array x_values = random_array(rng, {20, 300}, float32);
    for (const Shape& shape : {Shape{}, Shape{20, 1}, Shape{300}}) {
      expect_fused_is_single(p.get(), {x_values, full(shape, array(exponent))});
    }
  }
}

// Chains multiply by the inverse of a power of two where there is one.
TEST(Compiled, DivisionsByScalars) {
  std::vector<float> numbers = {0.0f, -0.0f, INFINITY, -INFINITY, NAN};
  for (int exponent = -149; exponent < 128; ++exponent) {
    numbers.push_back(std::ldexp(1.0f + exponent % 8 / 8.0f, exponent));
  }
  array x_values(numbers.begin(), {282}, float32);
  std::vector<float> divisors = {3.0f, 0.0f, -0.0f, INFINITY, NAN};
  for (int exponent : {-149, -127, -126, -2, 0, 1, 125, 126, 127}) {
    divisors.push_back(std::ldexp(1.0f, exponent));
    divisors.push_back(-divisors.back());
  }
  for (float divisor : divisors) {
    SCOPED_TRACE(divisor);
    Program p;
    int x = p.input(float32);
    int d = p.input(float32, Extent::one);
    // Together with a load, alone, together with a store.
    int y = p.step(Op::abs, {p.step(Op::divide, {x, d})});
    y = p.step(Op::negative, {p.step(Op::divide, {y, d})});
    p.output(p.step(Op::divide, {y, d}));
    expect_fused_is_single(p.get(), {x_values, array(divisor)});
  }
}

TEST(Compiled, LongChainsAndManyInputs) {
  std::mt19937 rng(10);
  Program p;
  std::vector<array> inputs;
  std::vector<int> values;
  for (int k = 0; k < 40; ++k) {
    values.push_back(p.input(float32));
    inputs.push_back(random_array(rng, {3000}, float32));
  }
  int y = values[0];
  for (int k = 1; k < 500; ++k) {
    y = p.step(
        k % 3 ? Op::add : Op::maximum,
        {p.step(Op::sigmoid, {y}), values[k % 40]});
  }
  p.output(y);
  expect_fused_is_single(p.get(), inputs);
}

TEST(Compiled, LargeResultsOnSeveralThreads) {
  std::mt19937 rng(11);
  array x = random_array(rng, {1 << 12, 1025}, float32);
  int before = cpu::num_threads();
  cpu::set_num_threads(3);
  expect_fused_is_single(gelu(float32), gelu_inputs(x));
  cpu::set_num_threads(before);
  clear_cache();  // other tests count memory
}

// A result takes over the memory of an input that nobody needs any more, but
// not of one that is read after the result is written.
TEST(Compiled, TakesOverMemoryOfInputs) {
  std::mt19937 rng(12);
  Program p;
  int x = p.input(float32);
  int y = p.input(float32);
  int s = p.step(Op::add, {x, y});
  p.output(s);
  p.output(p.step(Op::multiply, {s, y}));
  const FusedProgram& program = p.get();
  array x0 = random_array(rng, {5000}, float32);
  array y0 = random_array(rng, {5000}, float32);
  std::vector<array> expected = run_single(program, {x0, y0});
  array a = x0 * array(1.0f);
  array b = y0 * array(1.0f);
  eval(a, b);
  const float* x_data = a.data<float>();
  const float* y_data = b.data<float>();
  auto primitive =
      std::make_shared<Compiled>(default_stream(Device::cpu), program);
  std::vector<array> got = nodes_of(primitive, {std::move(a), std::move(b)});
  eval(got);
  EXPECT_EQ(got[0].data<float>(), x_data);
  EXPECT_EQ(got[1].data<float>(), y_data);
  for (int o : {0, 1}) {
    expect_same_bits(got[o], expected[o]);
  }
}

}  // namespace
}  // namespace mlx::core
