// Texts of kernels for fused programs: what they depend on, and that the
// run-time compiler takes all of them. It needs no gpu for that, but a build
// with the CUDA backend.
#include "backend/cuda/fused_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/cpu/compiled_testing.h"
#include "backend/cuda/fused_steps.h"
#include "backend/cuda/program_testing.h"

namespace mlx::core::cuda {
namespace {

using core::testing::all_dtypes;
using core::testing::Program;

FusedForm flat_form(const FusedProgram& program, int pack, int packs) {
  FusedForm form;
  form.pack = static_cast<uint8_t>(pack);
  form.packs = static_cast<uint8_t>(packs);
  form.has_tail = pack > 1;
  FusedRead read = pack == 1 ? FusedRead::splat : FusedRead::pack;
  form.inputs.assign(program.inputs.size(), {read});
  form.outputs.resize(program.outputs.size());
  return form;
}

TEST(FusedText, NamesFormulasOnce) {
  Program b;
  int x = b.input(float32);
  b.output(b.step(ElementwiseOp::add, {b.step(ElementwiseOp::add, {x, x}), x}));
  std::string text = fused_formulas(b.get());
  EXPECT_EQ(text.find("do_add_float"), text.rfind("do_add_float"));
  EXPECT_NE(text.find("a + b"), std::string::npos);
}

TEST(FusedText, SignedIntegersWrap) {
  Program b;
  int x = b.input(int32);
  b.output(b.step(ElementwiseOp::multiply, {x, x}));
  EXPECT_NE(
      fused_formulas(b.get()).find("using T = uint32_t"), std::string::npos);
}

TEST(FusedText, HalvesAreRoundedAfterEveryStep) {
  Program b;
  int x = b.input(float16);
  int y = b.step(ElementwiseOp::add, {x, x});
  b.output(b.step(ElementwiseOp::multiply, {y, x}));
  std::string text = fused_text(b.get(), flat_form(b.get(), 8, 1));
  EXPECT_NE(text.find("const half h1 = convert<half>("), std::string::npos);
  EXPECT_NE(text.find("const float v1 = to_compute(h1);"), std::string::npos);
}

// As generated code computes it.
float quotient(float x, float c) {
  float r = 1.0f / c;
  float q = x * r;
  float better = std::fma(std::fma(-c, q, x), r, q);
  return std::fabs(x) > 0x1p-60f && std::fabs(x) < 0x1p60f ? better : q;
}

TEST(FusedText, QuotientsByKnownNumbersAreRoundedAsQuotients) {
  std::mt19937 rng(5);
  int close = 0;
  std::vector<float> divisors = {std::sqrt(2.0f), 3.0f, 10.0f, 0.1f, -6.0f};
  for (int k = 0; k < 200; ++k) {
    divisors.push_back(1.0f + std::ldexp(static_cast<float>(rng() >> 8), -24));
  }
  for (float c : divisors) {
    if (fused_divisor(float32, c) != FusedDivisor::close) {
      continue;
    }
    ++close;
    for (int k = 0; k < 40000; ++k) {
      float x = std::ldexp(static_cast<float>(rng() >> 8), -23);
      ASSERT_EQ(quotient(x, c), x / c) << x << " / " << c;
    }
  }
  EXPECT_GT(close, 100);
  for (float x : {0.0f, -0.0f, INFINITY, -INFINITY}) {
    EXPECT_EQ(quotient(x, 3.0f), x / 3.0f);
    EXPECT_EQ(std::signbit(quotient(x, 3.0f)), std::signbit(x / 3.0f));
  }
  EXPECT_TRUE(std::isnan(quotient(NAN, 3.0f)));
}

// All quotients of two bfloat16 and a part of those of two float16.
TEST(FusedText, QuotientsOfHalvesAreProductsWithReciprocals) {
  EXPECT_EQ(fused_divisor(bfloat16, 3.0), FusedDivisor::exact);
  EXPECT_EQ(fused_divisor(float16, 7.0), FusedDivisor::close);
  EXPECT_EQ(fused_divisor(bfloat16, 0.0), FusedDivisor::any);
  for (int b = 128; b < 256; ++b) {
    for (int a = 128; a < 256; ++a) {
      auto x = static_cast<float>(a);
      auto c = static_cast<float>(b);
      ASSERT_EQ(
          static_cast<float>(bfloat16_t(x * (1.0f / c))),
          static_cast<float>(bfloat16_t(x / c)));
    }
  }
  for (int b = 1024; b < 2048; b += 3) {
    for (int a = 1024; a < 2048; ++a) {
      auto x = static_cast<float>(a);
      auto c = static_cast<float>(b);
      ASSERT_EQ(
          static_cast<float>(float16_t(quotient(x, c))),
          static_cast<float>(float16_t(x / c)));
    }
  }
}

// As generated code computes it for what a row is divided by.
float quotient_of_row(float x, float c) {
  float r = 1.0f / c;
  float rest = std::fma(-c, r, 1.0f) * r;
  float q = std::fma(x, r, x * rest);
  return std::fma(std::fma(-c, q, x), r, q);
}
float quotient_of_row_of_float16(float x, float c) {
  double r = 1.0 / c;
  return static_cast<float>(x * r);
}

TEST(FusedText, QuotientsByNumbersOfRowsAreRoundedAsQuotients) {
  std::mt19937 rng(6);
  auto some = [&] {
    // Significands of all kinds: few bits, many ones.
    uint32_t bits = rng() >> 9;
    bits = rng() % 4 == 0 ? bits & 0xff : rng() % 4 == 0 ? bits | ~0xffu : bits;
    return 1.0f + std::ldexp(static_cast<float>(bits & 0x7fffff), -23);
  };
  for (int k = 0; k < 2000000; ++k) {
    float c = some();
    // Near the middle between two floats.
    double middle = some() + 0x1p-24;
    auto x = static_cast<float>(c * middle);
    for (float near : {x, std::nextafter(x, 0.0f), some()}) {
      ASSERT_EQ(quotient_of_row(near, c), near / c) << near << c;
    }
  }
}

// The middles between subnormal float16 are normal floats.
TEST(FusedText, QuotientsInTheMiddleOfSubnormalsAreRoundedAsQuotients) {
  int met = 0;
  for (int significand = 1024; significand < 2048; significand += 5) {
    for (int exponent = -20; exponent <= 4; ++exponent) {
      float c = std::ldexp(static_cast<float>(significand), exponent);
      for (int k = 1; k < 2048; k += 2) {
        float x = c * std::ldexp(static_cast<float>(k), -25);
        if (static_cast<float>(float16_t(x)) != x) {
          continue;
        }
        ++met;
        auto want = static_cast<float>(float16_t(x / c));
        float by_row = quotient_of_row_of_float16(x, c);
        ASSERT_EQ(static_cast<float>(float16_t(by_row)), want);
        ASSERT_EQ(static_cast<float>(float16_t(quotient(x, c))), want);
      }
    }
  }
  EXPECT_GT(met, 1000);
}

// All significands, and what is zero, infinite or no number.
TEST(FusedText, QuotientsOfRowsOfFloat16AreQuotientsOfFloats) {
  auto same = [](float a, float b) {
    return (std::isnan(a) && std::isnan(b)) ||
           (a == b && std::signbit(a) == std::signbit(b));
  };
  for (int b = 1024; b < 2048; ++b) {
    for (int a = 1024; a < 2048; ++a) {
      auto x = static_cast<float>(a);
      auto c = static_cast<float>(b);
      ASSERT_EQ(quotient_of_row_of_float16(x, c), x / c) << a << " / " << b;
    }
  }
  std::vector<float> few = {
      0.0f, 0x1p-24f, 3 * 0x1p-24f, 0.3330078125f, 65504.0f, INFINITY, NAN};
  for (float x : few) {
    for (float c : few) {
      for (float y : {x, -x}) {
        EXPECT_TRUE(same(quotient_of_row_of_float16(y, c), y / c)) << y << c;
        EXPECT_TRUE(same(quotient_of_row_of_float16(y, -c), y / -c)) << y << c;
      }
    }
  }
}

TEST(FusedText, PowersOfTwoDivideByProducts) {
  EXPECT_EQ(fused_divisor(float32, 2.0), FusedDivisor::exact);
  EXPECT_EQ(fused_divisor(float64, -0.125), FusedDivisor::exact);
  EXPECT_EQ(fused_divisor(float64, 3.0), FusedDivisor::any);
  EXPECT_EQ(fused_divisor(float32, INFINITY), FusedDivisor::any);
  EXPECT_EQ(fused_divisor(float32, NAN), FusedDivisor::any);
}

TEST(FusedText, ShapesAreNoPartOfIt) {
  Program b;
  int x = b.input(float32);
  b.output(b.step(ElementwiseOp::exp, {x}));
  FusedForm form = flat_form(b.get(), 4, 2);
  EXPECT_EQ(fused_text(b.get(), form), fused_text(b.get(), form));
  FusedForm wide = form;
  wide.wide = true;
  EXPECT_NE(fused_text(b.get(), form), fused_text(b.get(), wide));
}

#ifdef MLX_HAVE_NVRTC

// Every operation that takes operands of type t, each an output.
FusedProgram all_operations(Dtype t) {
  Program b;
  int x = b.input(t);
  int y = b.input(t);
  int condition = b.input(bool_);
  for (int i = 0; i < kNumElementwiseOps; ++i) {
    auto op = static_cast<ElementwiseOp>(i);
    if (!elementwise_accepts(op, t) || elementwise_operand_dtype(op, t) != t) {
      continue;
    }
    int arity = elementwise_info(op).arity;
    b.output(
        arity == 1   ? b.step(op, {x})
        : arity == 2 ? b.step(op, {x, y})
                     : b.step(op, {condition, x, y}));
  }
  return b.get();
}

// From every type to every other.
FusedProgram all_casts() {
  Program b;
  for (Dtype t : all_dtypes()) {
    b.input(t);
  }
  for (int from = 0; from < kNumDtypes; ++from) {
    for (Dtype to : all_dtypes()) {
      b.output(b.cast(from, to));
    }
  }
  return b.get();
}

class FusedTextOf : public ::testing::TestWithParam<Dtype> {};

TEST_P(FusedTextOf, AllOperationsCompile) {
  FusedProgram program = all_operations(GetParam());
  EXPECT_EQ(complaint(fused_text(program, flat_form(program, 1, 1))), "");
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes,
    FusedTextOf,
    ::testing::ValuesIn(all_dtypes()),
    [](const ::testing::TestParamInfo<Dtype>& info) {
      return std::string(fused_type(info.param));
    });

TEST(FusedText, AllCastsCompile) {
  FusedProgram program = all_casts();
  EXPECT_EQ(complaint(fused_text(program, flat_form(program, 1, 1))), "");
}

TEST(FusedText, PairsOfHalvesCompile) {
  for (Dtype t : {float16, bfloat16}) {
    FusedProgram program = all_operations(t);
    EXPECT_EQ(complaint(fused_text(program, flat_form(program, 2, 1))), "");
  }
  FusedProgram program = all_casts();
  EXPECT_EQ(complaint(fused_text(program, flat_form(program, 2, 1))), "");
}

TEST(FusedText, SumsOfHalvesAreTakenInPairs) {
  Program b;
  int x = b.input(bfloat16);
  int y = b.input(float32);
  int sum = b.step(ElementwiseOp::add, {x, x});
  b.output(b.step(ElementwiseOp::multiply, {b.cast(sum, float32), y}));
  b.output(b.cast(y, bfloat16));
  std::string text = fused_text(b.get(), flat_form(b.get(), 4, 1));
  EXPECT_NE(text.find("w2 = add_pairs<bhalf>(w0, w0)"), std::string::npos);
  EXPECT_NE(
      text.find("v4_1 = do_multiply_float(v3_1, v1_1)"), std::string::npos);
  EXPECT_NE(text.find("w5 = round_pair<bhalf>("), std::string::npos);
  EXPECT_EQ(complaint(text), "");
  text = fused_text(b.get(), flat_form(b.get(), 1, 1));
  EXPECT_EQ(text.find("add_pairs<"), std::string::npos);
}

// A form of random reads, layouts and widths.
FusedForm random_form(const FusedProgram& program, std::mt19937& rng) {
  FusedForm form;
  auto below = [&](int n) { return static_cast<int>(rng() % n); };
  form.pack = static_cast<uint8_t>(1 << below(3));
  form.packs = static_cast<uint8_t>(1 << below(2));
  form.wide = below(2) == 0;
  form.axes = static_cast<uint8_t>(1 + below(5));
  form.layouts = static_cast<uint16_t>(2 + below(4));
  for (const FusedProgram::Input& in : program.inputs) {
    static constexpr FusedRead kReads[] = {
        FusedRead::number,
        FusedRead::value,
        FusedRead::splat,
        FusedRead::pieces,
        FusedRead::pack,
        FusedRead::literal};
    bool is_float = in.dtype == float32;
    FusedRead read = kReads[below(is_float ? 6 : 5)];
    read = read == FusedRead::pack && form.pack == 1 ? FusedRead::splat : read;
    form.inputs.push_back(
        {read, static_cast<uint16_t>(below(form.layouts + 1)), 0x40400000});
    if (read == FusedRead::value && is_float) {
      form.inputs.back().divisor = static_cast<FusedDivisor>(below(3));
    }
  }
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    bool is_full = below(2) == 0;
    form.outputs.push_back(
        is_full ? FusedForm::Output{}
                : FusedForm::Output{1, static_cast<uint16_t>(below(3))});
  }
  return form;
}

TEST(FusedText, LayoutsCompile) {
  std::mt19937 rng(1);
  for (int run = 0; run < 8; ++run) {
    Program b;
    int x = b.input(float32);
    int h = b.input(bfloat16);
    int flag = b.input(bool_);
    int whole = b.input(int8);
    int sum = b.step(ElementwiseOp::add, {x, b.cast(h, float32)});
    int chosen = b.step(ElementwiseOp::select, {flag, sum, x});
    b.output(b.step(ElementwiseOp::power, {chosen, x}));
    b.output(b.step(ElementwiseOp::divide, {chosen, x}));
    b.output(b.step(ElementwiseOp::negative, {whole}));
    b.output(b.step(ElementwiseOp::multiply, {h, h}));
    EXPECT_EQ(complaint(fused_text(b.get(), random_form(b.get(), rng))), "");
  }
}

TEST(FusedText, ManyArgumentsCompile) {
  Program b;
  int x = b.input(float32);
  b.output(b.step(ElementwiseOp::negative, {x}));
  FusedForm form = flat_form(b.get(), 4, 2);
  form.many = 128;
  EXPECT_EQ(complaint(fused_text(b.get(), form)), "");
}

// Softmax of scaled rows, with their largest elements and a mean square.
FusedProgram rows_program(Dtype t) {
  Program b;
  int x = b.input(t);
  int scale = b.input(t);
  int weight = b.input(t);
  int y = b.step(ElementwiseOp::multiply, {x, scale});
  int top = b.reduce(ReduceType::max, y, t);
  int e =
      b.step(ElementwiseOp::exp, {b.step(ElementwiseOp::subtract, {y, top})});
  int sum = b.reduce(ReduceType::sum, e, t);
  int square =
      b.reduce(ReduceType::sum, b.step(ElementwiseOp::square, {y}), float32);
  int softmax = b.step(ElementwiseOp::divide, {e, sum});
  b.output(b.step(ElementwiseOp::multiply, {softmax, weight}));
  b.output(top);
  b.output(square);
  b.output(b.step(ElementwiseOp::negative, {weight}));
  return b.get();
}

TEST(FusedText, RowsCompile) {
  for (FusedForm::Kind kind :
       {FusedForm::Kind::held, FusedForm::Kind::walked}) {
    for (Dtype t : {float32, float16, float64}) {
      for (int pack : {1, 2}) {
        FusedProgram program = rows_program(t);
        FusedForm form = flat_form(program, pack, 2);
        form.kind = kind;
        form.axes = 2;
        form.layouts = 4;
        FusedRead read = pack == 1 ? FusedRead::pieces : FusedRead::pack;
        form.inputs = {{read, 0}, {FusedRead::splat, 1}, {read, 2}};
        form.outputs = {{}, {3, 4, true}, {3, 4, true}, {2, 4}};
        EXPECT_EQ(complaint(fused_text(program, form)), "");
      }
    }
  }
}

// Every reduction of every type, of elements that are one for all.
TEST(FusedText, AllReductionsCompile) {
  Program b;
  FusedForm form;
  form.kind = FusedForm::Kind::held;
  form.axes = 1;
  form.layouts = 2;
  for (Dtype t : all_dtypes()) {
    b.input(t);
    form.inputs.push_back({FusedRead::pieces, 0});
  }
  for (int x = 0; x < kNumDtypes; ++x) {
    for (int i = 0; i < 6; ++i) {
      auto type = static_cast<ReduceType>(i);
      bool is_logic = type == ReduceType::all || type == ReduceType::any;
      b.output(b.reduce(type, x, is_logic ? bool_ : all_dtypes()[x]));
      form.outputs.push_back({1, 2, true});
    }
  }
  EXPECT_EQ(complaint(fused_text(b.get(), form)), "");
}

#endif

}  // namespace
}  // namespace mlx::core::cuda
