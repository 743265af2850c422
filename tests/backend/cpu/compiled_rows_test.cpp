// Fused programs with reductions along the last axis against their single
// operations: equal bits where no order of additions matters, else closely.
#include <gtest/gtest.h>

#include "backend/cpu/compiled_testing.h"
#include "backend/cpu/threads.h"
#include "mlx/memory.h"

namespace mlx::core {
namespace {

using namespace testing;
using Op = ElementwiseOp;

double bound_of(Dtype t) {
  switch (t.val()) {
    case Dtype::Val::float16:
      return 0x1p-9;
    case Dtype::Val::bfloat16:
      return 0x1p-6;
    case Dtype::Val::float64:
      return 1e-12;
    default:
      return 1e-5;
  }
}

bool is_inexact(Dtype t) {
  return t.val() >= Dtype::Val::float16;
}

void expect_close(const array& got, const array& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  ASSERT_EQ(got.dtype(), expected.dtype());
  if (!is_inexact(got.dtype())) {
    expect_same_bits(got, expected);
    return;
  }
  double bound = bound_of(got.dtype());
  EXPECT_TRUE(allclose(got, expected, bound, bound, true).item<bool>());
}

void expect_fused_is_close(
    const FusedProgram& program, const std::vector<array>& inputs) {
  std::vector<array> expected = run_single(program, inputs);
  std::vector<array> got = run_fused(program, inputs);
  for (size_t o = 0; o < got.size(); ++o) {
    SCOPED_TRACE("output " + std::to_string(o));
    expect_close(got[o], expected[o]);
  }
}

const ReduceType kTypes[] = {
    ReduceType::all,
    ReduceType::any,
    ReduceType::sum,
    ReduceType::prod,
    ReduceType::min,
    ReduceType::max};

FusedProgram softmax_program(Dtype t) {
  Program p;
  int x = p.input(t);
  int m = p.reduce(ReduceType::max, x);
  int e = p.step(Op::exp, {p.step(Op::subtract, {x, m})});
  p.output(p.step(Op::divide, {e, p.reduce(ReduceType::sum, e)}));
  return p.get();
}

// x * rsqrt(mean(x * x) + eps) * w, in float32 for 16-bit types.
FusedProgram rms_norm_program(Dtype t) {
  Program p;
  int x = p.input(t);
  int w = p.input(t);
  int scale = p.input(float32, Extent::one);
  int eps = p.input(float32, Extent::one);
  int wide = t == float32 ? x : p.cast(x, float32);
  int sum = p.reduce(ReduceType::sum, p.step(Op::multiply, {wide, wide}));
  int r = p.step(
      Op::rsqrt, {p.step(Op::add, {p.step(Op::multiply, {sum, scale}), eps})});
  int y = p.step(Op::multiply, {wide, r});
  y = t == float32 ? y : p.cast(y, t);
  p.output(p.step(Op::multiply, {y, w}));
  return p.get();
}

FusedProgram layer_norm_program() {
  Program p;
  int x = p.input(float32);
  int scale = p.input(float32, Extent::one);
  int eps = p.input(float32, Extent::one);
  int mean = p.step(Op::multiply, {p.reduce(ReduceType::sum, x), scale});
  int d = p.step(Op::subtract, {x, mean});
  int var = p.step(
      Op::multiply,
      {p.reduce(ReduceType::sum, p.step(Op::square, {d})), scale});
  int r = p.step(Op::rsqrt, {p.step(Op::add, {var, eps})});
  p.output(p.step(Op::multiply, {d, r}));
  p.output(mean);
  p.output(var);
  return p.get();
}

TEST(CompiledRows, AllReductionsOfAllTypes) {
  std::mt19937 rng(21);
  for (Dtype t : all_dtypes()) {
    for (ReduceType type : kTypes) {
      Program p;
      int x = p.input(t);
      // Products stay finite: ones and halves.
      bool is_product = type == ReduceType::prod && is_inexact(t);
      int y = is_product ? x : p.step(Op::add, {x, x});
      p.output(p.reduce(type, y));
      p.output(y == x ? p.step(Op::add, {x, x}) : y);
      if (type == ReduceType::sum || type == ReduceType::prod) {
        p.output(p.reduce(type, y, reduce_accumulator(type, t)));
      }
      for (const Shape& shape :
           {Shape{40, 1},
            Shape{9, 7},
            Shape{1, 256},
            Shape{2, 3, 1000},
            Shape{1, 100000},
            Shape{3, 0},
            Shape{300000}}) {
        SCOPED_TRACE(
            "type " + std::to_string(static_cast<int>(t.val())) + " reduce " +
            std::to_string(static_cast<int>(type)) + " length " +
            std::to_string(shape.back()));
        array x = is_product ? ones(shape, t) : random_array(rng, shape, t);
        if (is_inexact(t) && type == ReduceType::sum) {
          x = random_array(rng, shape, t, false);
          x = t == complex64 ? x : abs(x);
        }
        eval(x);
        expect_fused_is_close(p.get(), {x});
      }
    }
  }
}

TEST(CompiledRows, Softmax) {
  std::mt19937 rng(22);
  for (Dtype t : {float32, float16, bfloat16, float64}) {
    for (const Shape& shape :
         {Shape{33, 5},
          Shape{4, 3, 256},
          Shape{7, 1000},
          Shape{2, 100000},
          Shape{1, 300001},
          Shape{1000, 1}}) {
      SCOPED_TRACE(shape.back());
      expect_fused_is_close(
          softmax_program(t), {random_array(rng, shape, t, false)});
    }
  }
}

// Where rows need no buffers their blocks are those of single reductions, and
// so is each bit.
TEST(CompiledRows, SoftmaxBitsAreThoseOfSingleOperations) {
  std::mt19937 rng(29);
  for (int n : {257, 1000, 1024, 4095, 4096, 4100, 5000, 16384}) {
    SCOPED_TRACE(n);
    array x = random_array(rng, {3, n}, float32, false);
    expect_fused_is_single(softmax_program(float32), {x});
    // Exponentials of all sizes, down to subnormal numbers and zero.
    expect_fused_is_single(
        softmax_program(float32), {multiply(x, array(20.0f))});
    array masked = where(greater(x, array(0.0f)), x, array(-INFINITY));
    expect_fused_is_single(softmax_program(float32), {masked});
    expect_fused_is_single(
        softmax_program(float32),
        {transpose(random_array(rng, {n, 3}, float32))});
  }
  for (float same : {-INFINITY, INFINITY, NAN, 3e38f, -3e38f, 1e-45f}) {
    expect_fused_is_single(
        softmax_program(float32), {full({2, 1000}, array(same))});
  }
}

// Exponentials of numbers that scale in one step, in two, and of both in one
// group of elements.
TEST(CompiledRows, ExponentialsOfAllSizes) {
  Program p;
  int x = p.input(float32);
  int e = p.step(Op::exp, {x});
  p.output(p.step(Op::add, {e, x}));
  p.output(e);
  int n = 1 << 16;
  array steps = divide(subtract(arange(n), array(n / 2.0f)), array(300.0f));
  array near = add(array(87.0f), divide(steps, array(1e5f)));
  array seventh = equal(remainder(arange(n), array(7)), array(0));
  for (float outlier : {90.0f, -90.0f, -103.9f, INFINITY, -INFINITY, NAN}) {
    array few = divide(steps, array(2.0f));
    array mixed = where(seventh, array(outlier), few);
    for (const array& y : {steps, near, negative(near), mixed}) {
      expect_fused_is_single(p.get(), {y});
    }
  }
}

// Sums of products, which are not stored unless somebody wants them.
TEST(CompiledRows, SumsOfProducts) {
  std::mt19937 rng(30);
  for (int n : {3, 64, 300, 999, 1024}) {
    SCOPED_TRACE(n);
    Shape shape{9, n};
    array x = random_array(rng, shape, float32, false);
    array y = random_array(rng, shape, float32, false);
    array apart = slice(
        random_array(rng, {9, 2 * n}, float32, false),
        {0, 1},
        {9, 2 * n},
        {1, 2});
    array row = random_array(rng, {n}, float32, false);
    array one = random_array(rng, {1, 1}, float32, false);
    array special = random_array(rng, shape, float32);
    for (const array& other : {y, apart, row, one, special, x}) {
      Program p;
      int a = p.input(float32);
      int b =
          p.input(float32, other.size() == 1 ? Extent::one : Extent::element);
      int product = p.step(Op::multiply, {a, b});
      int sum = p.reduce(ReduceType::sum, product);
      p.output(p.step(Op::subtract, {a, sum}));
      p.output(p.reduce(ReduceType::sum, p.step(Op::square, {b})));
      p.output(p.reduce(ReduceType::max, p.step(Op::square, {a})));
      expect_fused_is_single(p.get(), {x, other});
      // The product is wanted itself, in this pass and the next.
      p.output(p.step(Op::add, {product, sum}));
      expect_fused_is_single(p.get(), {x, other});
      p.output(product);
      expect_fused_is_single(p.get(), {x, other});
    }
  }
}

TEST(CompiledRows, Norms) {
  std::mt19937 rng(23);
  for (int n : {1, 7, 64, 1000, 4096, 20000}) {
    SCOPED_TRACE(n);
    array scale(1.0f / static_cast<float>(n));
    array eps(1e-5f);
    for (Dtype t : {float32, float16, bfloat16}) {
      expect_fused_is_close(
          rms_norm_program(t),
          {random_array(rng, {5, 6, n}, t, false),
           random_array(rng, {n}, t, false),
           scale,
           eps});
    }
    expect_fused_is_close(
        layer_norm_program(),
        {random_array(rng, {30, n}, float32, false), scale, eps});
  }
}

// Values of rows from outside, strided inputs, values of rows as results.
TEST(CompiledRows, RowsGoInAndOut) {
  std::mt19937 rng(24);
  for (int n : {3, 300, 2000}) {
    Program p;
    int x = p.input(float32);
    int r = p.input(float32, Extent::row);
    int h = p.input(float16, Extent::row);
    int a = p.step(Op::multiply, {r, p.cast(h, float32)});
    int y = p.step(Op::maximum, {x, a});
    int m = p.reduce(ReduceType::max, y);
    int b = p.step(Op::add, {m, a});
    p.output(a);
    p.output(p.step(Op::less, {y, b}));
    p.output(b);
    p.output(p.step(Op::exp, {p.step(Op::expm1, {p.cast(h, bfloat16)})}));
    array h_row = transpose(random_array(rng, {1, 5, 40}, float16), {2, 1, 0});
    for (const array& x_in :
         {random_array(rng, {40, 5, n}, float32),
          transpose(random_array(rng, {n, 5, 40}, float32)),
          transpose(random_array(rng, {5, 40, n}, float32), {1, 0, 2}),
          random_array(rng, {5, n}, float32),
          random_array(rng, {n}, float32)}) {
      eval(x_in, h_row);
      expect_fused_is_single(
          p.get(), {x_in, random_array(rng, {40, 5, 1}, float32), h_row});
    }
  }
}

// Without reductions, values of rows are scalars for long rows.
TEST(CompiledRows, RowsWithoutReductions) {
  std::mt19937 rng(25);
  Program p;
  int x = p.input(float32);
  int r = p.input(float32, Extent::row);
  int y = p.step(Op::power, {p.step(Op::multiply, {x, r}), r});
  p.output(p.step(Op::select, {p.step(Op::less, {r, x}), r, y}));
  array two = full({50, 1}, array(2.0f));
  for (int n : {100, 257, 3000}) {
    expect_fused_is_single(p.get(), {random_array(rng, {50, n}, float32), two});
  }
}

// A dear value that both passes want, in an output and not.
TEST(CompiledRows, ValuesAreKeptBetweenPasses) {
  std::mt19937 rng(26);
  Program p;
  int x = p.input(float32);
  int e = p.step(Op::sin, {x});
  int f = p.step(Op::cos, {x});
  int m = p.reduce(ReduceType::max, p.step(Op::multiply, {e, f}));
  int y = p.step(Op::subtract, {p.step(Op::add, {e, f}), m});
  int least = p.reduce(ReduceType::min, y);
  p.output(p.step(Op::multiply, {p.step(Op::add, {y, least}), f}));
  p.output(e);
  for (const Shape& shape :
       {Shape{50, 20}, Shape{20, 1500}, Shape{1, 200000}, Shape{5, 40000}}) {
    expect_fused_is_single(p.get(), {random_array(rng, shape, float32)});
  }
}

// Rows of large arrays are stored past the caches.
TEST(CompiledRows, LargeResults) {
  std::mt19937 rng(27);
  expect_fused_is_close(
      softmax_program(float32),
      {random_array(rng, {5001, 1003}, float32, false)});
  // Rows of whole groups, which chains store themselves.
  expect_fused_is_close(
      softmax_program(float32),
      {random_array(rng, {5001, 1024}, float32, false)});
  clear_cache();  // other tests count memory
}

TEST(CompiledRows, DoNotDependOnThreads) {
  std::mt19937 rng(28);
  int before = cpu::num_threads();
  for (const Shape& shape : {Shape{1000, 37}, Shape{3, 1 << 18}}) {
    array x = random_array(rng, shape, float32, false);
    cpu::set_num_threads(1);
    array expected = run_fused(softmax_program(float32), {x})[0];
    cpu::set_num_threads(4);
    expect_same_bits(run_fused(softmax_program(float32), {x})[0], expected);
  }
  cpu::set_num_threads(before);
}

// The sum of a long row has the accuracy of the single operation: a few
// roundings, not one per element.
TEST(CompiledRows, LongSumsAreExact) {
  Program p;
  int x = p.input(float32);
  p.output(p.reduce(ReduceType::sum, p.step(Op::multiply, {x, x})));
  int n = 5000000;
  array got = run_fused(p.get(), {full({n}, array(0.1f))})[0];
  double square = static_cast<double>(0.1f * 0.1f);
  EXPECT_NEAR(got.item<float>() / (square * n), 1.0, 1e-6);
}

}  // namespace
}  // namespace mlx::core
