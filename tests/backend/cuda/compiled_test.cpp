// Fused programs on the gpu beside its own single operations: the same bits,
// in all types and layouts. Without a gpu these tests say that they were left
// out.
#include "ops/compiled.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/cpu/compiled_testing.h"

namespace mlx::core {
namespace {

using namespace testing;
using Op = ElementwiseOp;

class CudaCompiled : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_backend(Device::gpu)) {
      GTEST_SKIP() << "no usable gpu";
    }
    fused_stream() = default_stream(Device::gpu);
  }
  void TearDown() override { fused_stream() = default_stream(Device::cpu); }

  // An array that the device holds, unlike those that the tests make.
  static array on_device(const array& x) {
    array y = copy(x, default_stream(Device::gpu));
    y.eval();
    return y;
  }
};

TEST_F(CudaCompiled, GeluOfAllFloats) {
  std::mt19937 rng(1);
  for (Dtype t : {float32, float64, float16, bfloat16}) {
    for (int n : {1, 3, 31, 64, 1000, 5000, 300001}) {
      SCOPED_TRACE(n);
      expect_fused_is_single(gelu(t), gelu_inputs(random_array(rng, {n}, t)));
    }
  }
}

// Generated code has a shorter erf of its own for them.
TEST_F(CudaCompiled, ErfOfEveryBfloat16) {
  std::vector<uint16_t> bits(1 << 16);
  for (size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<uint16_t>(i);
  }
  array x = view(array(bits.begin(), {1 << 16}, uint16), bfloat16);
  eval(x);
  Program p;
  int in = p.input(bfloat16);
  p.output(p.step(Op::erf, {in}));
  p.output(p.step(Op::negative, {in}));
  expect_fused_is_single(p.get(), {x});
}

TEST_F(CudaCompiled, RandomProgramsOfAllTypes) {
  std::mt19937 rng(2);
  for (Dtype t : all_dtypes()) {
    for (int run = 0; run < 4; ++run) {
      SCOPED_TRACE("type " + std::to_string(static_cast<int>(t.val())));
      FusedProgram program = random_program(
          rng, t, {Extent::element, Extent::element, Extent::one}, 1 + run * 4);
      Shape shape = run % 3 == 0 ? Shape{7} : Shape{37, 91};
      SCOPED_TRACE(Compiled(fused_stream(), program).name());
      expect_fused_is_single(
          program,
          {random_array(rng, shape, t),
           random_array(rng, shape, t),
           random_array(rng, {}, t)});
    }
  }
}

TEST_F(CudaCompiled, LayoutsAndBroadcasts) {
  std::mt19937 rng(3);
  Shape shape{6, 52, 72};
  for (Dtype t : {float32, int16, bfloat16, complex64}) {
    std::vector<array> layouts = {
        random_array(rng, shape, t),
        transpose(random_array(rng, {72, 52, 6}, t)),
        transpose(random_array(rng, {6, 72, 52}, t), {0, 2, 1}),
        slice(
            random_array(rng, {6, 104, 72}, t),
            {0, 0, 0},
            {6, 104, 72},
            {1, 2, 1}),
        slice(random_array(rng, {6, 52, 73}, t), {0, 0, 1}, {6, 52, 73}),
        random_array(rng, {72}, t),
        random_array(rng, {52, 1}, t),
        random_array(rng, {6, 1, 72}, t),
        random_array(rng, {}, t),
        broadcast_to(random_array(rng, {1, 52, 1}, t), shape),
        slice(
            random_array(rng, shape, t),
            {-1, -1, -1},
            {-7, -53, -73},
            {-1, -1, -1})};
    for (array& a : layouts) {
      eval(a);
    }
    FusedProgram program = random_program(
        rng, t, {Extent::element, Extent::element, Extent::element}, 6);
    for (int run = 0; run < 30; ++run) {
      SCOPED_TRACE("run " + std::to_string(run));
      std::vector<array> inputs;
      for (int k = 0; k < 3; ++k) {
        inputs.push_back(layouts[rng() % layouts.size()]);
      }
      expect_fused_is_single(program, inputs);
    }
  }
}

TEST_F(CudaCompiled, AllCasts) {
  std::mt19937 rng(4);
  Program p;
  std::vector<array> inputs;
  for (Dtype from : all_dtypes()) {
    int x = p.input(from);
    inputs.push_back(random_array(rng, {1500}, from, false));
    for (Dtype to : all_dtypes()) {
      p.output(p.cast(x, to));
    }
  }
  expect_fused_is_single(p.get(), inputs);
}

TEST_F(CudaCompiled, OutputsOfSeveralShapes) {
  expect_outputs_of_several_shapes();
}

TEST_F(CudaCompiled, EmptyAndSingleElements) {
  std::mt19937 rng(6);
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{1, 1}, Shape{0}, Shape{3, 0}, Shape{0, 4}}) {
    array x = random_array(rng, shape, float16);
    expect_fused_is_single(gelu(float16), gelu_inputs(x));
  }
}

// Exponents that are written into the text, and the same from the device.
TEST_F(CudaCompiled, PowersOfScalars) {
  std::mt19937 rng(9);
  Program p;
  int x = p.input(float32);
  int e = p.input(float32, Extent::one);
  p.output(p.step(Op::add, {p.step(Op::power, {x, e}), x}));
  array values = random_array(rng, {20, 300}, float32);
  for (float exponent : {2.0f, 3.0f, 0.5f, 1.7f}) {
    SCOPED_TRACE(exponent);
    expect_fused_is_single(p.get(), {values, array(exponent)});
    expect_fused_is_single(p.get(), {values, on_device(array(exponent))});
  }
}

// Divisors by whose reciprocals it is multiplied, and others.
TEST_F(CudaCompiled, QuotientsByScalars) {
  std::mt19937 rng(13);
  for (Dtype t : {float32, float64, float16, bfloat16}) {
    for (float by : {2.0f, 0.125f, 1.41421354f, 3.0f, 7.0f, 1e-30f, 0.0f}) {
      SCOPED_TRACE(by);
      Program p;
      int x = p.input(t);
      int c = p.input(t, Extent::one);
      p.output(p.step(Op::add, {p.step(Op::divide, {x, c}), x}));
      p.output(p.step(Op::divide, {x, c}));
      expect_fused_is_single(
          p.get(), {random_array(rng, {3001}, t), array(by, t)});
    }
  }
}

TEST_F(CudaCompiled, LongChainsAndManyInputs) {
  std::mt19937 rng(10);
  Program p;
  std::vector<array> inputs;
  std::vector<int> values;
  for (int k = 0; k < 200; ++k) {
    values.push_back(p.input(float32));
    inputs.push_back(random_array(rng, {3001}, float32));
  }
  int y = values[0];
  for (int k = 1; k < 400; ++k) {
    y = p.step(
        k % 3 ? Op::add : Op::maximum,
        {p.step(Op::negative, {y}), values[k % 200]});
  }
  p.output(y);
  expect_fused_is_single(p.get(), inputs);
}

// A result takes over the memory of an input that nobody needs any more.
TEST_F(CudaCompiled, TakesOverMemoryOfInputs) {
  std::mt19937 rng(12);
  Program p;
  int x = p.input(float32);
  int y = p.input(float32);
  int s = p.step(Op::add, {x, y});
  p.output(s);
  p.output(p.step(Op::multiply, {s, y}));
  array x0 = random_array(rng, {5000}, float32);
  array y0 = random_array(rng, {5000}, float32);
  std::vector<array> expected = run_single(p.get(), {x0, y0});
  array a = on_device(x0);
  array b = on_device(y0);
  auto primitive = std::make_shared<Compiled>(fused_stream(), p.get());
  std::vector<array> got = nodes_of(primitive, {std::move(a), std::move(b)});
  eval(got);
  for (int o : {0, 1}) {
    expect_same_bits(got[o], expected[o]);
  }
}

FusedProgram adam() {
  Program p;
  int w = p.input(float32);
  int g = p.input(float32);
  int m = p.input(float32);
  int v = p.input(float32);
  int rate = p.input(float32, Extent::one);
  int keep = p.input(float32, Extent::one);
  int new_m = p.step(
      Op::add, {p.step(Op::multiply, {m, keep}), p.step(Op::subtract, {g, m})});
  int new_v = p.step(
      Op::add, {p.step(Op::multiply, {v, keep}), p.step(Op::square, {g})});
  int step = p.step(Op::multiply, {new_m, p.step(Op::rsqrt, {new_v})});
  p.output(p.step(Op::subtract, {w, p.step(Op::multiply, {step, rate})}));
  p.output(new_m);
  p.output(new_v);
  return p.get();
}

// Calls of one program become one launch, whatever their sizes: of each array
// the step before last is gone, as is its memory.
TEST_F(CudaCompiled, StepsOverManyArrays) {
  std::mt19937 rng(30);
  FusedProgram program = adam();
  std::vector<std::vector<array>> states;
  std::vector<std::vector<array>> expected;
  for (int k = 0; k < 300; ++k) {
    int n = k % 7 == 0 ? 40000 + k : 1 + k * 13;
    std::vector<array> state;
    for (int i = 0; i < 4; ++i) {
      state.push_back(
          on_device(abs(random_array(rng, {n}, float32, false)) + array(0.5f)));
    }
    state.push_back(array(0.01f * k));
    state.push_back(array(0.9f));
    states.push_back(state);
  }
  expected = states;
  for (int step = 0; step < 3; ++step) {
    auto one = std::make_shared<Compiled>(fused_stream(), program);
    auto other = std::make_shared<Compiled>(fused_stream(), program);
    std::vector<array> all;
    for (size_t k = 0; k < states.size(); ++k) {
      std::vector<array>& s = states[k];
      std::vector<array> made = nodes_of(k % 2 ? one : other, s);
      s[0] = made[0];
      s[2] = made[1];
      s[3] = made[2];
      all.insert(all.end(), made.begin(), made.end());
    }
    eval(all);
    for (std::vector<array>& s : expected) {
      std::vector<array> made = run_single(program, s);
      s[0] = made[0];
      s[2] = made[1];
      s[3] = made[2];
    }
  }
  for (size_t k = 0; k < states.size(); ++k) {
    for (int i : {0, 2, 3}) {
      expect_same_bits(states[k][i], expected[k][i]);
    }
  }
}

// Between small operations, which wait for each other in a list.
TEST_F(CudaCompiled, AmongSmallOperations) {
  std::mt19937 rng(32);
  Stream s = fused_stream();
  for (Dtype t : {float32, float16, bfloat16}) {
    array x = on_device(random_array(rng, {1000}, t, false));
    array y = on_device(random_array(rng, {1000}, t, false));
    auto primitive = std::make_shared<Compiled>(s, gelu(t));
    array got = x;
    array want = x;
    for (int k = 0; k < 5; ++k) {
      got = add(nodes_of(primitive, gelu_inputs(multiply(got, y, s)))[0], y, s);
      array z = multiply(want, y, s);
      eval(z);
      want = add(run_single(gelu(t), gelu_inputs(z))[0], y, s);
      eval(want);
    }
    eval(got);
    expect_same_bits(got, want);
  }
}

// Each call reads what the one before has written, or writes what it has read.
TEST_F(CudaCompiled, CallsThatDependAreKeptApart) {
  std::mt19937 rng(31);
  Program p;
  int x = p.input(float32);
  int y = p.input(float32);
  p.output(p.step(Op::maximum, {p.step(Op::subtract, {y, x}), x}));
  auto primitive = std::make_shared<Compiled>(fused_stream(), p.get());
  array a = on_device(random_array(rng, {100000}, float32, false));
  array b = on_device(random_array(rng, {100000}, float32, false));
  std::vector<array> want = {a, b};
  for (int k = 0; k < 50; ++k) {
    array made = run_single(p.get(), want)[0];
    want = {want[1], made};
  }
  // No copies of the arrays but those that nodes hold.
  std::vector<array> got = {std::move(a), std::move(b)};
  for (int k = 0; k < 50; ++k) {
    array made = nodes_of(primitive, got)[0];
    got = {got[1], made};
  }
  eval(got);
  expect_same_bits(got[1], want[1]);
}

// Softmax of x + shift, the largest elements and a mean square beside it.
FusedProgram rows_program(Dtype t) {
  Program p;
  int x = p.input(t);
  int shift = p.input(t);
  int weight = p.input(t);
  int y = p.step(Op::add, {x, shift});
  int top = p.reduce(ReduceType::max, y);
  int e = p.step(Op::exp, {p.step(Op::subtract, {y, top})});
  int sum = p.reduce(ReduceType::sum, e);
  int square = p.reduce(ReduceType::sum, p.step(Op::square, {y}));
  int scaled = p.step(Op::divide, {e, sum});
  p.output(p.step(Op::multiply, {scaled, weight}));
  p.output(top);
  p.output(p.step(Op::sqrt, {square}));
  return p.get();
}

// Sums in another order: a few roundings of the largest.
void expect_close(const array& got, const array& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  ASSERT_EQ(got.dtype(), expected.dtype());
  double rtol = got.dtype() == float16    ? 4e-3
                : got.dtype() == bfloat16 ? 3e-2
                : got.dtype() == float32  ? 4e-6
                                          : 1e-13;
  EXPECT_TRUE(
      allclose(
          astype(got, float64), astype(expected, float64), rtol, rtol, true)
          .item<bool>());
}

TEST_F(CudaCompiled, RowsOfAllLengths) {
  std::mt19937 rng(20);
  for (Dtype t : {float32, float16, bfloat16, float64}) {
    for (int n :
         {2, 3, 7, 32, 100, 129, 1000, 4096, 5003, 8192, 20000, 50257}) {
      SCOPED_TRACE("type " + std::to_string(static_cast<int>(t.val())));
      SCOPED_TRACE(n);
      int rows = n < 200 ? 301 : 5;
      std::vector<array> inputs = {
          random_array(rng, {3, rows, n}, t, false),
          random_array(rng, {rows, 1}, t, false),
          random_array(rng, {n}, t, false)};
      std::vector<array> got = run_fused(rows_program(t), inputs);
      std::vector<array> expected = run_single(rows_program(t), inputs);
      for (size_t o = 0; o < got.size(); ++o) {
        SCOPED_TRACE("output " + std::to_string(o));
        expect_close(got[o], expected[o]);
      }
    }
  }
}

TEST_F(CudaCompiled, RowsOfAllLayouts) {
  std::mt19937 rng(21);
  Shape shape{6, 52, 72};
  Dtype t = float32;
  std::vector<array> layouts = {
      random_array(rng, shape, t, false),
      transpose(random_array(rng, {72, 52, 6}, t, false)),
      slice(random_array(rng, {6, 52, 73}, t, false), {0, 0, 1}, {6, 52, 73}),
      slice(
          random_array(rng, {6, 52, 144}, t, false),
          {0, 0, 0},
          {6, 52, 144},
          {1, 1, 2}),
      random_array(rng, {72}, t, false),
      random_array(rng, {52, 72}, t, false),
      random_array(rng, {6, 1, 72}, t, false),
      broadcast_to(random_array(rng, {6, 52, 1}, t, false), shape),
      broadcast_to(random_array(rng, {}, t, false), shape)};
  for (array& a : layouts) {
    eval(a);
  }
  for (size_t k = 0; k < layouts.size(); ++k) {
    for (size_t m = 0; m < layouts.size(); m += 2) {
      SCOPED_TRACE(std::to_string(k) + ", " + std::to_string(m));
      std::vector<array> inputs = {
          broadcast_to(layouts[k], shape),
          random_array(rng, {52, 1}, t, false),
          layouts[m]};
      std::vector<array> got = run_fused(rows_program(t), inputs);
      std::vector<array> expected = run_single(rows_program(t), inputs);
      for (size_t o = 0; o < got.size(); ++o) {
        expect_close(got[o], expected[o]);
      }
    }
  }
}

// Whole numbers, truth values and extremes do not depend on the order.
TEST_F(CudaCompiled, ReductionsOfAllTypes) {
  std::mt19937 rng(22);
  for (Dtype t : all_dtypes()) {
    if (t == complex64) {
      continue;
    }
    SCOPED_TRACE("type " + std::to_string(static_cast<int>(t.val())));
    Program p;
    int x = p.input(t);
    int y = p.input(t);
    int z = p.step(Op::maximum, {x, y});
    int low = p.reduce(ReduceType::min, z);
    p.output(low);
    p.output(p.reduce(ReduceType::max, z));
    p.output(p.reduce(ReduceType::all, z));
    p.output(p.reduce(ReduceType::any, z));
    p.output(p.step(Op::not_equal, {z, low}));
    if (t.val() < Dtype::Val::float16 && t != bool_) {
      Dtype sum = reduce_accumulator(ReduceType::sum, t);
      p.output(p.reduce(ReduceType::sum, z, sum));
      p.output(p.reduce(ReduceType::prod, z, sum));
    }
    for (int n : {5, 64, 3000}) {
      SCOPED_TRACE(n);
      expect_fused_is_single(
          p.get(), {random_array(rng, {40, n}, t), random_array(rng, {n}, t)});
    }
  }
}

// The same memory in and out, of rows that registers hold and of longer ones.
TEST_F(CudaCompiled, RowsTakeOverMemory) {
  std::mt19937 rng(23);
  for (int n : {512, 40000}) {
    array x = random_array(rng, {7, n}, float32, false);
    array shift = random_array(rng, {7, 1}, float32, false);
    array weight = random_array(rng, {n}, float32, false);
    FusedProgram program = rows_program(float32);
    std::vector<array> expected = run_single(program, {x, shift, weight});
    array a = on_device(x);
    auto primitive = std::make_shared<Compiled>(fused_stream(), program);
    std::vector<array> got = nodes_of(primitive, {std::move(a), shift, weight});
    eval(got);
    for (size_t o = 0; o < got.size(); ++o) {
      expect_close(got[o], expected[o]);
    }
  }
}

}  // namespace
}  // namespace mlx::core
