// Fused programs beside the single operations that they are made of.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "ops/compiled.h"
#include "ops/elementwise_primitive.h"
#include "ops/reduce.h"
#include "ops/views.h"

namespace mlx::core::testing {

/// Builds a program step by step.
class Program {
 public:
  using Op = ElementwiseOp;

  int input(Dtype dtype, Extent extent = Extent::element) {
    program_.inputs.push_back({dtype, extent});
    return program_.num_inputs() - 1;
  }
  int step(Op op, std::vector<int> operands) {
    FusedStep step;
    step.kind = FusedStep::Kind::elementwise;
    step.op = op;
    step.dtype = elementwise_result_dtype(op, program_.dtype(operands.back()));
    return add(step, operands);
  }
  int cast(int value, Dtype dtype) {
    FusedStep step;
    step.kind = FusedStep::Kind::cast;
    step.dtype = dtype;
    return add(step, {value});
  }
  int reduce(ReduceType type, int value, Dtype dtype) {
    FusedStep step;
    step.kind = FusedStep::Kind::reduce;
    step.reduce = type;
    step.dtype = dtype;
    int result = add(step, {value});
    program_.steps.back().extent = Extent::row;
    return result;
  }
  int reduce(ReduceType type, int value) {
    Dtype t = program_.dtype(value);
    bool is_logic = type == ReduceType::all || type == ReduceType::any;
    return reduce(type, value, is_logic ? bool_ : t);
  }
  void output(int value) { program_.outputs.push_back(value); }

  const FusedProgram& get() const { return program_; }
  Dtype dtype(int value) const { return program_.dtype(value); }

 private:
  int add(FusedStep step, const std::vector<int>& operands) {
    step.arity = static_cast<uint8_t>(operands.size());
    step.extent = Extent::one;
    for (size_t k = 0; k < operands.size(); ++k) {
      step.operands[k] = operands[k];
      step.extent = std::max(step.extent, program_.extent(operands[k]));
    }
    program_.steps.push_back(step);
    return program_.num_inputs() + static_cast<int>(program_.steps.size()) - 1;
  }

  FusedProgram program_;
};

/// GELU as layers write it: x * (1 + erf(x / sqrt(2))) / 2.
inline FusedProgram gelu(Dtype t) {
  Program p;
  int x = p.input(t);
  int root = p.input(t, Extent::one);
  int one = p.input(t, Extent::one);
  int two = p.input(t, Extent::one);
  int y = p.step(ElementwiseOp::divide, {x, root});
  y = p.step(ElementwiseOp::add, {one, p.step(ElementwiseOp::erf, {y})});
  p.output(p.step(
      ElementwiseOp::divide, {p.step(ElementwiseOp::multiply, {x, y}), two}));
  return p.get();
}

inline std::vector<array> gelu_inputs(const array& x) {
  return {
      x,
      array(std::sqrt(2.0f), x.dtype()),
      array(1.0f, x.dtype()),
      array(2.0f, x.dtype())};
}

/// `steps` random steps on the inputs, which all have type `t`; bools are made
/// by comparisons and used by select.
inline FusedProgram random_program(
    std::mt19937& rng, Dtype t, const std::vector<Extent>& inputs, int steps) {
  Program p;
  std::vector<int> values;
  std::vector<int> bools;
  for (Extent extent : inputs) {
    values.push_back(p.input(t, extent));
  }
  auto any = [&](const std::vector<int>& of) {
    return of[std::uniform_int_distribution<size_t>(0, of.size() - 1)(rng)];
  };
  std::uniform_int_distribution<int> op_of(0, kNumElementwiseOps - 1);
  for (int s = 0; s < steps;) {
    ElementwiseOp op = static_cast<ElementwiseOp>(op_of(rng));
    int arity = elementwise_info(op).arity;
    if (!elementwise_accepts(op, t) || elementwise_operand_dtype(op, t) != t ||
        (op == ElementwiseOp::select && bools.empty())) {
      continue;
    }
    // Recent values are used more often, so that programs grow deep.
    std::vector<int> operands;
    for (int k = 0; k < arity; ++k) {
      operands.push_back(rng() % 2 ? values.back() : any(values));
    }
    if (op == ElementwiseOp::select) {
      operands[0] = any(bools);
    }
    int value = p.step(op, operands);
    Dtype result = p.dtype(value);
    if (result == bool_ && t != bool_) {
      bools.push_back(value);
    } else {
      values.push_back(result == t ? value : p.cast(value, t));
      if (t == bool_) {
        bools.push_back(values.back());
      }
    }
    ++s;
  }
  std::set<int> outputs = {values.back(), any(values)};
  if (!bools.empty()) {
    outputs.insert(bools.back());
  }
  for (int value : outputs) {
    if (value >= p.get().num_inputs()) {
      p.output(value);
    }
  }
  return p.get();
}

/// Where programs run; tests of other devices set it.
inline Stream& fused_stream() {
  static Stream stream = default_stream(Device::cpu);
  return stream;
}

/// Fresh nodes for the outputs of `primitive`.
inline std::vector<array> nodes_of(
    const std::shared_ptr<Compiled>& primitive,
    const std::vector<array>& inputs) {
  std::vector<Dtype> dtypes;
  for (int value : primitive->program().outputs) {
    dtypes.push_back(primitive->program().dtype(value));
  }
  return array::make_arrays(
      primitive->output_shapes(inputs), dtypes, primitive, inputs);
}

inline std::vector<array> run_fused(
    const FusedProgram& program, const std::vector<array>& inputs) {
  auto primitive = std::make_shared<Compiled>(fused_stream(), program);
  std::vector<array> outputs = nodes_of(primitive, inputs);
  eval(outputs);
  return outputs;
}

/// The same by single operations.
inline std::vector<array> run_single(
    const FusedProgram& program, const std::vector<array>& inputs) {
  Stream s = fused_stream();
  std::vector<array> values = inputs;
  for (const FusedStep& step : program.steps) {
    std::vector<array> operands;
    Shape shape;
    for (int k = 0; k < step.arity; ++k) {
      operands.push_back(values[step.operands[k]]);
      shape = broadcast_shapes(shape, operands.back().shape());
    }
    if (step.kind == FusedStep::Kind::elementwise) {
      values.push_back(
          make_node<Elementwise>(shape, step.dtype, operands, s, step.op));
    } else if (step.kind == FusedStep::Kind::cast) {
      values.push_back(make_node<AsType>(
          shape, step.dtype, operands, s, DtypeParams{step.dtype}));
    } else {
      int axis = static_cast<int>(shape.size()) - 1;
      shape.back() = 1;
      values.push_back(make_node<Reduce>(
          shape,
          step.dtype,
          operands,
          s,
          ReduceParams{step.reduce, {axis}, step.dtype}));
    }
  }
  std::vector<array> outputs;
  for (int value : program.outputs) {
    outputs.push_back(values[value]);
  }
  eval(outputs);
  return outputs;
}

/// Whether the number of type `t` at `x` is a NaN.
inline bool is_nan(const char* x, Dtype t) {
  auto load = [x](auto v) {
    std::memcpy(&v, x, sizeof(v));
    return v;
  };
  switch (t.val()) {
    case Dtype::Val::float16:
      return (load(uint16_t{}) & 0x7fff) > 0x7c00;
    case Dtype::Val::bfloat16:
      return (load(uint16_t{}) & 0x7fff) > 0x7f80;
    case Dtype::Val::float32:
      return std::isnan(load(float{}));
    case Dtype::Val::float64:
      return std::isnan(load(double{}));
    default:
      return false;
  }
}

/// Equal bits, except that a NaN is as good as another.
inline void expect_same_bits(const array& got, const array& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  ASSERT_EQ(got.dtype(), expected.dtype());
  array a = contiguous(got);
  array b = contiguous(expected);
  eval(a, b);
  // The parts of complex numbers one by one.
  bool is_complex = a.dtype() == complex64;
  Dtype part = is_complex ? float32 : a.dtype();
  size_t n = a.size() * (is_complex ? 2 : 1);
  const char* x = a.data<char>();
  const char* y = b.data<char>();
  for (size_t i = 0; i < n; ++i, x += part.size(), y += part.size()) {
    ASSERT_TRUE(
        std::memcmp(x, y, part.size()) == 0 ||
        (is_nan(x, part) && is_nan(y, part)))
        << "number " << i << " of " << n;
  }
}

inline void expect_fused_is_single(
    const FusedProgram& program, const std::vector<array>& inputs) {
  std::vector<array> expected = run_single(program, inputs);
  std::vector<array> got = run_fused(program, inputs);
  for (size_t o = 0; o < got.size(); ++o) {
    SCOPED_TRACE("output " + std::to_string(o));
    expect_same_bits(got[o], expected[o]);
  }
}

/// Numbers of both signs and some sizes, with NaN and infinities among floats.
inline array random_array(
    std::mt19937& rng, const Shape& shape, Dtype dtype, bool special = true) {
  size_t n = 1;
  for (int d : shape) {
    n *= d;
  }
  std::vector<float> values(n);
  bool is_float = dtype.val() >= Dtype::Val::float16;
  bool is_signed = is_float || dtype.val() >= Dtype::Val::int8;
  std::uniform_real_distribution<float> number(-4.0f, 4.0f);
  std::uniform_int_distribution<int> integer(is_signed ? -100 : 0, 100);
  std::uniform_int_distribution<int> die(0, 199);
  for (float& v : values) {
    v = is_float ? number(rng) : static_cast<float>(integer(rng));
    int side = die(rng);
    if (dtype == bool_) {
      v = static_cast<float>(side % 2);
    } else if (is_float && special && side < 5) {
      const float kSpecial[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN};
      v = kSpecial[side];
    }
  }
  array result(values.begin(), shape, dtype);
  eval(result);
  return result;
}

inline std::vector<Dtype> all_dtypes() {
  return {
      bool_,
      uint8,
      uint16,
      uint32,
      uint64,
      int8,
      int16,
      int32,
      int64,
      float16,
      float32,
      float64,
      bfloat16,
      complex64};
}

/// Outputs that iterate over less than the program as a whole.
inline void expect_outputs_of_several_shapes() {
  using Op = ElementwiseOp;
  std::mt19937 rng(7);
  Program p;
  int x = p.input(float32);
  int row = p.input(float32);
  int column = p.input(float32);
  int one = p.input(float32, Extent::one);
  int a = p.step(Op::exp, {row});
  int b = p.step(Op::multiply, {column, one});
  int c = p.step(Op::negative, {one});
  int d = p.step(Op::add, {p.step(Op::add, {a, b}), c});
  p.output(p.step(Op::multiply, {x, d}));
  for (int value : {a, b, c, d}) {
    p.output(value);
  }
  expect_fused_is_single(
      p.get(),
      {random_array(rng, {5, 30, 40}, float32),
       random_array(rng, {40}, float32),
       random_array(rng, {30, 1}, float32),
       random_array(rng, {}, float32)});
}

}  // namespace mlx::core::testing
