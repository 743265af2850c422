// The texts of kernels for every way in which arrays can lie: the run-time
// compiler takes each, and the argument that a text declares has the size of
// what the planner hands over. Needs no gpu, but a build with the CUDA backend.
#ifdef MLX_HAVE_NVRTC

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "backend/cpu/compiled_testing.h"
#include "backend/cuda/fused_layouts.h"
#include "backend/cuda/fused_steps.h"
#include "backend/cuda/fused_text.h"
#include "backend/cuda/program_testing.h"

namespace mlx::core::cuda {
namespace {

using core::testing::all_dtypes;
using core::testing::nodes_of;
using core::testing::Program;
using core::testing::random_array;
using Op = ElementwiseOp;

// Many kernels in few programs, since most of a program's time is that of what
// all have in common. What fails is named with its text.
class Texts {
 public:
  void add(std::string text) {
    static constexpr const char* kBegin = "namespace mlx::core::cuda {\n";
    size_t own = text.rfind(kBegin);
    bodies_[text.substr(0, own)].insert(text.substr(own + std::strlen(kBegin)));
  }

  size_t count() const {
    size_t all = 0;
    for (const auto& [prelude, bodies] : bodies_) {
      all += bodies.size();
    }
    return all;
  }

  void expect_compile() const {
    for (const auto& [prelude, bodies] : bodies_) {
      std::string program = prelude;
      int number = 0;
      for (std::string body : bodies) {
        program += "namespace mlx::core::cuda {\nnamespace form";
        program += std::to_string(number++) + " {\n";
        body.erase(body.find("extern \"C\" "), std::strlen("extern \"C\" "));
        program += body + "}\n";
      }
      std::string said = quick_complaint(program);
      EXPECT_TRUE(said.empty()) << said;
    }
  }

 private:
  std::map<std::string, std::set<std::string>> bodies_;
};

// What the planner chooses beside the layouts.
struct Choice {
  FusedForm::Kind kind = FusedForm::Kind::elements;
  int pack = 1;
  int packs = 1;
  bool is_aligned = true;
  bool wide = false;
  bool is_flat = false;
  int many = 0;
  FusedRead read = FusedRead::number;  // of numbers
  FusedDivisor divisor = FusedDivisor::any;
};

// As the executors do it, with addresses as `choice` says. The last two inputs
// are numbers, a divisor and an exponent.
std::string planned_text(
    const FusedProgram& program,
    const std::vector<array>& inputs,
    const Choice& choice) {
  auto primitive =
      std::make_shared<Compiled>(default_stream(Device::cpu), program);
  std::vector<array> outputs = nodes_of(primitive, inputs);
  FusedForm form;
  form.kind = choice.kind;
  form.pack = static_cast<uint8_t>(choice.pack);
  form.packs = static_cast<uint8_t>(choice.packs);
  form.many = static_cast<uint16_t>(choice.many);
  form.inputs.resize(inputs.size());
  form.outputs.resize(outputs.size());
  bool is_rows = choice.kind != FusedForm::Kind::elements;
  FusedLayouts layouts;
  if (!choice.is_flat) {
    Shape shape = Compiled::iteration_shape(inputs);
    layouts = FusedLayouts(shape, inputs, outputs, form, is_rows);
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    int layout = form.inputs[k].layout;
    form.inputs[k].read =
        is_number(inputs[k]) ? choice.read
        : choice.is_flat
            ? (choice.pack > 1 ? FusedRead::pack : FusedRead::splat)
            : layouts.read_of(layout, choice.pack, choice.is_aligned);
  }
  if (choice.read == FusedRead::value) {
    form.inputs[inputs.size() - 2].divisor = choice.divisor;
    form.inputs.back().read = FusedRead::literal;
    form.inputs.back().literal = 0x40400000;
  }
  form.has_tail = choice.is_flat && choice.pack > 1;
  form.wide = form.wide || choice.wide;
  size_t words = (is_rows ? 2 : 1) + inputs.size() + outputs.size();
  words += 2 * size_t(form.axes);
  for (const Strides& strides : layouts.strides()) {
    words += strides.size();
  }
  std::string text = fused_text(program, form);
  std::string check = "static_assert(sizeof(Args) == ";
  check += std::to_string(8 * words) + ");\n";
  return text.insert(text.find("extern \"C\""), check);
}

// Arrays that are `shape` or broadcast to it, in all the ways to lie that the
// planner tells apart. The last axis has an even number of packs.
std::vector<array> layouts_of(const Shape& shape, Dtype t, std::mt19937& rng) {
  size_t last = shape.size() - 1;
  Shape zeros(shape.size(), 0);
  auto some = [&](const Shape& s) { return random_array(rng, s, t); };
  auto with = [&](size_t axis, int size) {
    Shape s = shape;
    s[axis] = size;
    return s;
  };
  Shape begin = zeros;
  begin[last] = 1;
  Shape steps(shape.size(), 1);
  steps[last] = 2;
  Shape backward(shape.size(), -1);
  Shape from(shape.size(), -1);
  Shape to = shape;
  for (int& n : to) {
    n = -n - 1;
  }
  std::vector<array> found = {
      some(shape),
      slice(
          some(with(last, shape[last] + 1)),
          begin,
          with(last, shape[last] + 1)),
      slice(
          some(with(last, 2 * shape[last])),
          zeros,
          with(last, 2 * shape[last]),
          steps),
      slice(some(with(last, 2 * shape[last])), zeros, shape),
      slice(some(shape), from, to, backward),
      some({shape[last]}),
      slice(some({2 * shape[last]}), {0}, {2 * shape[last]}, {2}),
      some({}),
      some(Shape(shape.size(), 1)),
      broadcast_to(some({}), shape)};
  if (last > 0) {
    found.push_back(some(with(last, 1)));
    found.push_back(some(with(0, 1)));
    found.push_back(broadcast_to(some(with(last, 1)), shape));
    found.push_back(broadcast_to(some(with(0, 1)), shape));
    std::vector<int> order(shape.size());
    Shape turned = shape;
    for (size_t i = 0; i <= last; ++i) {
      order[i] = static_cast<int>(i);
    }
    std::swap(order[0], order[last - 1]);
    std::swap(turned[0], turned[last - 1]);
    found.push_back(transpose(some(turned), order));
  }
  for (array& a : found) {
    eval(a);
  }
  return found;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {32}, {1, 32}, {6, 32}, {3, 1, 32}, {3, 4, 32}, {2, 3, 4, 32}};
  return all;
}

bool is_float(Dtype t) {
  return t == float32 || t == float64 || t == float16 || t == bfloat16;
}

// The first of these that takes operands of type t.
int step_of(Program& b, std::vector<Op> ops, const std::vector<int>& operands) {
  Dtype t = b.dtype(operands.back());
  auto found = std::find_if(ops.begin(), ops.end(), [&](Op op) {
    return elementwise_accepts(op, t) && elementwise_operand_dtype(op, t) == t;
  });
  return b.step(*found, operands);
}

// x y / divisor, to a power; sums and products of what is no float.
int scaled(Program& b, int x, int y) {
  Dtype t = b.dtype(x);
  int divisor = b.input(t, Extent::one);
  int exponent = b.input(t, Extent::one);
  if (!is_float(t)) {
    int number = b.step(Op::multiply, {divisor, exponent});
    return b.step(Op::add, {b.step(Op::multiply, {x, y}), number});
  }
  int product = b.step(Op::multiply, {x, y});
  return b.step(Op::power, {b.step(Op::divide, {product, divisor}), exponent});
}

// Two reductions and what follows them. Among the outputs are elements, numbers
// of rows and what only the second input has, which may be less than the shape.
FusedProgram rows_program(Dtype t) {
  Program b;
  int x = b.input(t);
  int y = b.input(t);
  int z = scaled(b, x, y);
  int less = b.step(Op::subtract, {z, b.reduce(ReduceType::max, z, t)});
  int sum = b.reduce(ReduceType::sum, less, t);
  b.output(b.step(is_float(t) ? Op::divide : Op::multiply, {less, sum}));
  b.output(sum);
  b.output(step_of(b, {Op::negative, Op::logical_not}, {y}));
  return b.get();
}

FusedProgram elements_program(Dtype t) {
  Program b;
  int x = b.input(t);
  int y = b.input(t);
  int z = scaled(b, x, y);
  int differs = b.step(Op::not_equal, {x, y});
  b.output(b.step(Op::select, {differs, z, x}));
  b.output(step_of(b, {Op::negative, Op::logical_not}, {y}));
  return b.get();
}

// Each layout of one input beside each of the other: calls `visit` with both
// and two numbers.
template <typename F>
void for_all_layouts(Dtype t, F&& visit) {
  std::mt19937 rng(1);
  array one = random_array(rng, {}, t);
  for (const Shape& shape : shapes()) {
    std::vector<array> all = layouts_of(shape, t, rng);
    for (const array& x : all) {
      for (const array& y : all) {
        if (Compiled::iteration_shape({x, y}) == shape) {
          visit(std::vector<array>{x, y, one, one});
        }
      }
    }
  }
}

TEST(FusedForms, RowsOfAllLayoutsCompile) {
  Texts texts;
  FusedProgram program = rows_program(float32);
  for_all_layouts(float32, [&](const std::vector<array>& inputs) {
    texts.add(planned_text(program, inputs, {FusedForm::Kind::held}));
  });
  EXPECT_GT(texts.count(), 80u);
  texts.expect_compile();
}

TEST(FusedForms, ElementsOfAllLayoutsCompile) {
  Texts texts;
  FusedProgram program = elements_program(float32);
  for_all_layouts(float32, [&](const std::vector<array>& inputs) {
    texts.add(planned_text(program, inputs, {}));
  });
  EXPECT_GT(texts.count(), 80u);
  texts.expect_compile();
}

// Of each type some of all layouts, of each with some of all choices.
class FusedFormsOf : public ::testing::TestWithParam<Dtype> {
 protected:
  // The texts of `program` in forms of a kind.
  void add(FusedForm::Kind kind, const FusedProgram& program) {
    for_all_layouts(GetParam(), [&](const std::vector<array>& inputs) {
      if (rng_() % 97 == 0) {
        texts_.add(planned_text(program, inputs, some(kind)));
      }
    });
  }

  Choice some(FusedForm::Kind kind) {
    auto below = [&](unsigned n) { return static_cast<int>(rng_() % n); };
    Choice choice{kind, 1 << below(5), 1 << below(2)};
    while (choice.pack * GetParam().size() > 16) {
      choice.pack /= 2;
    }
    choice.is_aligned = below(4) != 0;
    choice.wide = below(2) == 0;
    bool is_elements = kind == FusedForm::Kind::elements;
    choice.many = is_elements && below(4) == 0 ? 8 : 0;
    choice.read = below(2) == 0 ? FusedRead::number : FusedRead::value;
    choice.divisor = static_cast<FusedDivisor>(below(3));
    if (!is_float(GetParam())) {
      choice.read = FusedRead::number;
    }
    return choice;
  }

  Texts texts_;
  std::mt19937 rng_{7};
};

TEST_P(FusedFormsOf, SomeOfAllFormsCompile) {
  FusedProgram rows = rows_program(GetParam());
  FusedProgram elements = elements_program(GetParam());
  add(FusedForm::Kind::held, rows);
  add(FusedForm::Kind::walked, rows);
  add(FusedForm::Kind::elements, elements);
  std::mt19937 rng(2);
  std::vector<array> flat(2, random_array(rng, {6, 32}, GetParam()));
  flat.insert(flat.end(), 2, random_array(rng, {}, GetParam()));
  for (int run = 0; run < 4; ++run) {
    Choice choice = some(FusedForm::Kind::elements);
    choice.is_flat = true;
    texts_.add(planned_text(elements, flat, choice));
  }
  EXPECT_GT(texts_.count(), 20u);
  texts_.expect_compile();
}

// With those parts of the headers that it needs.
TEST_P(FusedFormsOf, EachOperationAloneCompiles) {
  Dtype t = GetParam();
  std::mt19937 rng(3);
  array x = random_array(rng, {4, 6}, t);
  array condition = random_array(rng, {4, 6}, bool_);
  for (int i = 0; i < kNumElementwiseOps; ++i) {
    auto op = static_cast<Op>(i);
    if (!elementwise_accepts(op, t) || elementwise_operand_dtype(op, t) != t) {
      continue;
    }
    Program b;
    std::vector<int> operands;
    std::vector<array> inputs;
    for (int k = 0; k < elementwise_info(op).arity; ++k) {
      bool is_condition = op == Op::select && k == 0;
      operands.push_back(b.input(is_condition ? bool_ : t));
      inputs.push_back(is_condition ? condition : x);
    }
    b.output(b.step(op, operands));
    texts_.add(planned_text(b.get(), inputs, {}));
  }
  EXPECT_GT(texts_.count(), 10u);
  texts_.expect_compile();
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes,
    FusedFormsOf,
    ::testing::ValuesIn(all_dtypes()),
    [](const ::testing::TestParamInfo<Dtype>& info) {
      return std::string(fused_type(info.param));
    });

}  // namespace
}  // namespace mlx::core::cuda

#endif
