// Formulas of ops/elementwise.def as functions of the generated text, and the
// lines that call them. A half is held twice: its bits, to be stored, and the
// float that they stand for, so that every step's result is rounded once.
#include "backend/cuda/fused_steps.h"

#include <cmath>
#include <set>

#include "backend/cuda/elementwise_canonical.h"

namespace mlx::core::cuda {

const char* fused_type(Dtype t) {
  static constexpr const char* kNames[kNumDtypes] = {
      "bool",
      "uint8_t",
      "uint16_t",
      "uint32_t",
      "uint64_t",
      "int8_t",
      "int16_t",
      "int32_t",
      "int64_t",
      "half",
      "float",
      "double",
      "bhalf",
      "complex64"};
  return kNames[static_cast<int>(t.val())];
}

const char* fused_compute_type(Dtype t) {
  return is_half(t) ? "float" : fused_type(t);
}

namespace {

bool is_short_erf(ElementwiseOp op, Dtype t) {
  return op == ElementwiseOp::erf && t.val() == Dtype::Val::bfloat16;
}

// Halves are computed as floats.
std::string formula_name(ElementwiseOp op, Dtype t) {
  std::string name;
  put(name, "do_", elementwise_info(op).name, "_");
  name += is_short_erf(op, t) ? fused_type(t) : fused_compute_type(t);
  return name;
}

// Products of floats are never joined with sums that follow them: those are
// other steps, rounded by themselves.
const char* formula(ElementwiseOp op, Dtype t) {
  bool is_product =
      op == ElementwiseOp::multiply || op == ElementwiseOp::square;
  bool is_square = op == ElementwiseOp::square;
  if (is_product && (t.val() == Dtype::Val::float32 || is_half(t))) {
    return is_square ? "__fmul_rn(x, x)" : "__fmul_rn(a, b)";
  }
  if (is_product && t.val() == Dtype::Val::float64) {
    return is_square ? "__dmul_rn(x, x)" : "__dmul_rn(a, b)";
  }
  return is_short_erf(op, t) ? "erf_of_bhalf(x)" : elementwise_info(op).value;
}

// Types differ as for eager kernels: signed integers are taken as unsigned
// where it makes no difference, so that they wrap.
std::string formula_function(ElementwiseOp op, Dtype t) {
  Canonical by = canonical(op, t);
  Dtype used(by.type, t.size());
  bool is_bool = t.val() == Dtype::Val::bool_;
  const char* given = fused_compute_type(t);
  const char* result = fused_compute_type(elementwise_result_dtype(op, t));
  static constexpr const char* kLetters[2][2] = {{"x"}, {"a", "b"}};
  int arity = elementwise_info(op).arity;
  std::string text;
  put(text, "__device__ __forceinline__ ", result, " ", formula_name(op, t));
  for (int k = 0; k < arity; ++k) {
    put(text, k == 0 ? "(" : ", ", given, " given_", kLetters[arity - 1][k]);
  }
  const char* taken = is_bool ? "Truth" : fused_compute_type(used);
  put(text, ") {\n  using T = ", taken, ";\n");
  for (int k = 0; k < arity; ++k) {
    const char* letter = kLetters[arity - 1][k];
    put(text, "  const T ", letter, " = static_cast<T>(given_", letter, ");\n");
  }
  put(text, "  return static_cast<", result, ">(", formula(by.op, used));
  put(text, ");\n}\n");
  return text;
}

Dtype operand_dtype(const FusedProgram& program, const FusedStep& step) {
  return program.dtype(step.operands[step.arity - 1]);
}

bool divides_by_known(
    const FusedProgram& program, const FusedForm& form, const FusedStep& step) {
  return step.kind == FusedStep::Kind::elementwise &&
         step.op == ElementwiseOp::divide &&
         program.is_input(step.operands[1]) &&
         form.inputs[step.operands[1]].divisor != FusedDivisor::any;
}

int formula_weight(ElementwiseOp op, Dtype t) {
  using enum ElementwiseOp;
  int scale = t.val() == Dtype::Val::complex64 ? 4 : 1;
  switch (op) {
    case divide:
    case reciprocal:
    case sqrt:
    case rsqrt:
      return 8 * scale;
    case exp:
    case expm1:
    case sigmoid:
    case log:
    case tanh:
      return 24 * scale;
    case erf:
      return is_short_erf(op, t) ? 14 : 24;
    case log2:
    case log10:
    case log1p:
    case erfinv:
    case sin:
    case cos:
    case tan:
    case arcsin:
    case arccos:
    case arctan:
    case sinh:
    case cosh:
    case arcsinh:
    case arccosh:
    case arctanh:
    case floor_divide:
    case remainder:
    case power:
    case logaddexp:
    case arctan2:
      return 64 * scale;
    default:
      return scale;
  }
}

}  // namespace

FusedDivisor fused_divisor(Dtype t, double value) {
  // Far from where products lose bits.
  double size = std::abs(value);
  if (!(size > 0x1p-60 && size < 0x1p60)) {
    return FusedDivisor::any;
  }
  int exponent = 0;
  double significand = 2 * std::frexp(size, &exponent);
  // A quotient of two bfloat16 is farther from the middle between two of them
  // than the roundings of reciprocal and product, 2^-23, lead away from it, or
  // is that middle, among subnormals of float too, where nothing leads away.
  // Of float16 the middles of subnormals are normal floats.
  if (significand == 1 || t.val() == Dtype::Val::bfloat16) {
    return FusedDivisor::exact;
  }
  if (t.val() == Dtype::Val::float16) {
    return FusedDivisor::close;
  }
  if (t.val() != Dtype::Val::float32) {
    return FusedDivisor::any;
  }
  // With q = x r, r the rounded reciprocal, of relative error d 2^-24, q is off
  // by 1/2 + d units in the last place at most. x - q c is then exact if c's
  // significand is below 2 / (1/2 + d), and q + (x - q c) r is on the right
  // side of the middle between two floats if it is below 1 / (1/2 + d) / d.
  auto reciprocal = static_cast<double>(static_cast<float>(1 / value));
  double d = std::abs(reciprocal * value - 1) * 0x1p24;
  double reach = significand * (0.5 + d);
  return reach < 1.999 && reach * d < 0.999 ? FusedDivisor::close
                                            : FusedDivisor::any;
}

int fused_step_weight(
    const FusedProgram& program, const FusedForm& form, const FusedStep& step) {
  int exponent = step.operands[1];
  bool is_easy =
      divides_by_known(program, form, step) ||
      (step.op == ElementwiseOp::power && program.is_input(exponent) &&
       form.inputs[exponent].read == FusedRead::literal);
  int weight = step.kind == FusedStep::Kind::elementwise && !is_easy
                   ? formula_weight(step.op, operand_dtype(program, step))
                   : 2;
  return weight + (is_half(step.dtype) ? 2 : 0);
}

int fused_weight(const FusedProgram& program, const FusedForm& form) {
  int weight = 0;
  for (const FusedStep& step : program.steps) {
    weight += fused_step_weight(program, form, step);
  }
  return weight;
}

bool fused_divides_by_row(
    const FusedProgram& program,
    const FusedForm& form,
    const std::vector<bool>& of_row,
    int value) {
  if (program.is_input(value) ||
      program.step_of(value).kind != FusedStep::Kind::elementwise) {
    return false;
  }
  const FusedStep& step = program.step_of(value);
  Dtype t = program.dtype(step.operands[0]);
  return step.op == ElementwiseOp::divide &&
         (t.val() == Dtype::Val::float32 || is_half(t)) &&
         of_row[step.operands[1]] && !of_row[step.operands[0]] &&
         !divides_by_known(program, form, step);
}

// Of floats: the reciprocal of c in two parts, whose sum is right to 2^-47, so
// the first product is within 0.51 units in the last place. With that, an exact
// remainder and a rounded reciprocal the corrected product is the rounded
// quotient (Markstein), as long as nothing is too small: the rest is divided.
// Products of bfloat16 need no correction: they are farther from the middle
// between two, or in it and found there, as parts of small floats are all
// alike. A quotient of two float16 is 2^-36 of itself away from the middle
// between two floats, and no small float: the product in double is rounded to
// the same one, without a branch an element.
constexpr const char* kRowDivisor = R"(
__device__ __noinline__ float divide_rare(float x, float c) {
  return x / c;
}
template <typename T>
struct RowDivisor {
  float c, r, rest, least;
  __device__ __forceinline__ explicit RowDivisor(float divisor) {
    c = divisor;
    r = divide_rare(1.0f, c);
    rest = __fmul_rn(__fmaf_rn(-c, r, 1.0f), r);
    const bool is_usual = fabsf(c) > 0x1p-25f && fabsf(c) < 0x1p25f;
    least = is_usual ? 0x1p-100f : math::kInfinity;
  }
  __device__ __forceinline__ float operator()(float x) const {
    const float q = __fmaf_rn(x, r, __fmul_rn(x, rest));
    float y = __fmul_rn(x, r);
    const bool is_usual = fabsf(x) > least && fabsf(x) < 0x1p100f;
    y = is_usual ? __fmaf_rn(__fmaf_rn(-c, q, x), r, q) : y;
    if (!is_usual && (x != 0.0f || least > 1.0f)) {
      y = divide_rare(x, c);
    }
    return y;
  }
};
template <>
struct RowDivisor<bhalf> {
  float r, factor;
  __device__ __forceinline__ explicit RowDivisor(float c) {
    factor = 1.0f;
    if (fabsf(c) > 0x1p100f || fabsf(c) < 0x1p-100f) {
      factor = fabsf(c) < 1.0f ? 0x1p64f : 0x1p-64f;
    }
    r = divide_rare(1.0f, __fmul_rn(c, factor));
  }
  __device__ __forceinline__ float operator()(float x) const {
    return __fmul_rn(__fmul_rn(x, r), factor);
  }
};
template <>
struct RowDivisor<half> {
  double r;
  __device__ __forceinline__ explicit RowDivisor(float c) : r(1.0 / c) {}
  __device__ __forceinline__ float operator()(float x) const {
    return static_cast<float>(__dmul_rn(x, r));
  }
};
)";
const char* fused_row_divisor() {
  return kRowDivisor;
}

const char* fused_beginning() {
  return "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
         "  asm volatile(\"griddepcontrol.launch_dependents;\" ::: "
         "\"memory\");\n";
}

// Of x and the reciprocal r of c. What is very small or large, or no number,
// has no exact remainder; its product is within 2 units in the last place.
constexpr const char* kQuotients = R"(
__device__ __forceinline__ float product(float x, float r) {
  return __fmul_rn(x, r);
}
__device__ __forceinline__ double product(double x, double r) {
  return __dmul_rn(x, r);
}
__device__ __forceinline__ float quotient(float x, float c, float r) {
  const float q = __fmul_rn(x, r);
  const float better = __fmaf_rn(__fmaf_rn(-c, q, x), r, q);
  return fabsf(x) > 0x1p-60f && fabsf(x) < 0x1p60f ? better : q;
}
)";

// 1 - 2^(-t q(t)) with t = |x|, which loses what is small: that is a line of
// the series. Of bfloat16 every result is rounded as the exact one (fit: 2^-20
// of the result), at half of what the function of float costs.
constexpr const char* kErf = R"(
__device__ __forceinline__ float erf_of_bhalf(float x) {
  const float t = fabsf(x);
  float q = 0x1.88b47ap-9f;
  q = __fmaf_rn(q, t, -0x1.e832cep-6f);
  q = __fmaf_rn(q, t, 0x1.3105dcp-3f);
  q = __fmaf_rn(q, t, 0x1.d63572p-1f);
  q = __fmaf_rn(q, t, 0x1.a0be98p+0f);
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-__fmul_rn(t, q)));
  const float small = __fmul_rn(
      x, __fmaf_rn(__fmul_rn(x, x), -0x1.812746p-2f, 0x1.20dd76p+0f));
  return t < 0.0625f ? small : copysignf(1.0f - e, x);
}
)";

std::string fused_formulas(const FusedProgram& program) {
  std::set<std::string> known;
  std::string text = kQuotients;
  for (const FusedStep& step : program.steps) {
    if (step.kind == FusedStep::Kind::elementwise &&
        step.op != ElementwiseOp::select) {
      Dtype t = operand_dtype(program, step);
      if (known.insert(formula_name(step.op, t)).second) {
        text += is_short_erf(step.op, t) ? kErf : "";
        text += formula_function(step.op, t);
      }
    }
  }
  return text;
}

std::string fused_stored(const FusedProgram& program, int value) {
  std::string name;
  put(name, is_half(program.dtype(value)) ? "h" : "v", value);
  return name;
}

void put_input(
    std::string& text,
    const FusedProgram& program,
    int input,
    const std::string& element) {
  const char* type = fused_type(program.dtype(input));
  put(text, "  const ", type, " ", fused_stored(program, input), " = ");
  put(text, element, ";\n");
  if (is_half(program.dtype(input))) {
    put(text, "  const float v", input, " = to_compute(h", input, ");\n");
  }
}

void put_number(
    std::string& text,
    const FusedProgram& program,
    const FusedForm& form,
    int input) {
  const FusedForm::Input& in = form.inputs[input];
  const char* type = fused_type(program.dtype(input));
  std::string number;
  if (in.read == FusedRead::literal) {
    put(number, "convert<", type, ">(__uint_as_float(", in.literal, "u))");
  } else if (in.read == FusedRead::value) {
    put(number, "detail::number_in<", type, ">(a.from[", input, "])");
  } else {
    put(number, "*reinterpret_cast<const ", type, "*>(a.from[", input, "])");
  }
  put_input(text, program, input, number);
  // The value of a float leaves room for its reciprocal.
  if (in.divisor != FusedDivisor::any &&
      program.dtype(input).val() == Dtype::Val::float64) {
    put(text, "  const double r", input, " = 1.0 / v", input, ";\n");
  } else if (in.divisor != FusedDivisor::any) {
    put(text, "  const float r", input, " = __uint_as_float(");
    put(text, "static_cast<uint32_t>(a.from[", input, "] >> 32));\n");
  }
}

std::string fused_made(
    const FusedProgram& program,
    const FusedForm& form,
    int value,
    const std::function<std::string(int)>& name) {
  const FusedStep& step = program.step_of(value);
  const auto& from = step.operands;
  std::string made;
  if (step.kind == FusedStep::Kind::cast) {
    const char* type = fused_type(step.dtype);
    put(made, "convert<", type, ">(", name(from[0]), ")");
  } else if (step.op == ElementwiseOp::select) {
    put(made, name(from[0]), " ? ", name(from[1]), " : ", name(from[2]));
  } else if (divides_by_known(program, form, step)) {
    bool is_close = form.inputs[from[1]].divisor == FusedDivisor::close;
    put(made, is_close ? "quotient(" : "product(", name(from[0]));
    if (is_close) {
      put(made, ", ", name(from[1]));
    }
    put(made, ", r", from[1], ")");
  } else {
    put(made, formula_name(step.op, operand_dtype(program, step)));
    for (int k = 0; k < step.arity; ++k) {
      put(made, k == 0 ? "(" : ", ", name(from[k]));
    }
    made += ")";
  }
  return made;
}

void put_step(
    std::string& text,
    const FusedProgram& program,
    const FusedForm& form,
    int value) {
  const FusedStep& step = program.step_of(value);
  bool moves_bits = step.kind == FusedStep::Kind::elementwise &&
                    step.op == ElementwiseOp::select;
  std::string made = fused_made(program, form, value, [&](int v) {
    std::string name;
    put(name, "v", v);
    return moves_bits && v != step.operands[0] ? fused_stored(program, v)
                                               : name;
  });
  put_made(text, program, value, made);
}

void put_made(
    std::string& text,
    const FusedProgram& program,
    int value,
    const std::string& made) {
  Dtype t = program.dtype(value);
  if (!is_half(t)) {
    put(text, "  const ", fused_compute_type(t), " v", value, " = ", made);
    text += ";\n";
    return;
  }
  const char* type = fused_type(t);
  put(text, "  const ", type, " h", value, " = convert<", type, ">(");
  put(text, made, ");\n  const float v", value, " = to_compute(h", value);
  put(text, ");\n");
}

}  // namespace mlx::core::cuda
