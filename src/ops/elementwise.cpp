// Graph building of the elementwise operations: promotion and checks from the
// table, and the functions that are made of several rows.
#include "mlx/ops/elementwise.h"

#include <limits>
#include <numbers>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/elementwise_primitive.h"
#include "types/error.h"

namespace mlx::core {

namespace {

void check_accepts(ElementwiseOp op, Dtype t) {
  static constexpr const char* kAccepted[] = {
      "any type", "a number type", "a real type", "an integer type or bool"};
  if (!elementwise_accepts(op, t)) {
    const ElementwiseInfo& info = elementwise_info(op);
    invalid(
        info.name,
        "type not accepted: ",
        t,
        ". Expected ",
        kAccepted[static_cast<int>(info.accepts)],
        ".");
  }
}

bool is_inexact(const array& a) {
  return issubdtype(a.dtype(), inexact);
}

array all_false(const array& a, Stream s) {
  return zeros_like(a, bool_, s);
}

array constant(double value, const array& like) {
  return array(value, like.dtype());
}

// Without the copies that a braced list makes of its items.
void add_operand(
    std::vector<array>& operands, const array& a, Dtype type, Stream s) {
  if (a.dtype() == type) {
    operands.push_back(a);
  } else {
    operands.push_back(astype(a, type, s));
  }
}

}  // namespace

array elementwise(ElementwiseOp op, const array& a, Stream s) {
  Dtype t = a.dtype();
  check_accepts(op, t);
  std::vector<array> operands;
  operands.reserve(1);
  add_operand(operands, a, elementwise_operand_dtype(op, t), s);
  return make_node<Elementwise>(
      a.shape(), elementwise_result_dtype(op, t), std::move(operands), s, op);
}

array elementwise(ElementwiseOp op, const array& a, const array& b, Stream s) {
  Dtype t = promote_types(a.dtype(), b.dtype());
  check_accepts(op, t);
  Dtype operand = elementwise_operand_dtype(op, t);
  std::vector<array> operands;
  operands.reserve(2);
  add_operand(operands, a, operand, s);
  add_operand(operands, b, operand, s);
  return make_node<Elementwise>(
      a.shape() == b.shape() ? a.shape()
                             : broadcast_shapes(a.shape(), b.shape()),
      elementwise_result_dtype(op, t),
      std::move(operands),
      s,
      op);
}

#define MLX_UNARY_FUNCTION(name)                              \
  array name(const array& a, StreamOrDevice s) {              \
    return elementwise(ElementwiseOp::name, a, to_stream(s)); \
  }
#define MLX_BINARY_FUNCTION(name)                                \
  array name(const array& a, const array& b, StreamOrDevice s) { \
    return elementwise(ElementwiseOp::name, a, b, to_stream(s)); \
  }

MLX_UNARY_FUNCTION(abs)
MLX_UNARY_FUNCTION(negative)
MLX_UNARY_FUNCTION(sign)
MLX_UNARY_FUNCTION(square)
MLX_UNARY_FUNCTION(sqrt)
MLX_UNARY_FUNCTION(rsqrt)
MLX_UNARY_FUNCTION(reciprocal)
MLX_UNARY_FUNCTION(exp)
MLX_UNARY_FUNCTION(expm1)
MLX_UNARY_FUNCTION(log)
MLX_UNARY_FUNCTION(log2)
MLX_UNARY_FUNCTION(log10)
MLX_UNARY_FUNCTION(log1p)
MLX_UNARY_FUNCTION(sigmoid)
MLX_UNARY_FUNCTION(erf)
MLX_UNARY_FUNCTION(erfinv)
MLX_UNARY_FUNCTION(sin)
MLX_UNARY_FUNCTION(cos)
MLX_UNARY_FUNCTION(tan)
MLX_UNARY_FUNCTION(arcsin)
MLX_UNARY_FUNCTION(arccos)
MLX_UNARY_FUNCTION(arctan)
MLX_UNARY_FUNCTION(sinh)
MLX_UNARY_FUNCTION(cosh)
MLX_UNARY_FUNCTION(tanh)
MLX_UNARY_FUNCTION(arcsinh)
MLX_UNARY_FUNCTION(arccosh)
MLX_UNARY_FUNCTION(arctanh)
MLX_UNARY_FUNCTION(logical_not)
MLX_UNARY_FUNCTION(bitwise_invert)
MLX_BINARY_FUNCTION(add)
MLX_BINARY_FUNCTION(subtract)
MLX_BINARY_FUNCTION(multiply)
MLX_BINARY_FUNCTION(divide)
MLX_BINARY_FUNCTION(floor_divide)
MLX_BINARY_FUNCTION(remainder)
MLX_BINARY_FUNCTION(power)
MLX_BINARY_FUNCTION(maximum)
MLX_BINARY_FUNCTION(minimum)
MLX_BINARY_FUNCTION(logaddexp)
MLX_BINARY_FUNCTION(arctan2)
MLX_BINARY_FUNCTION(equal)
MLX_BINARY_FUNCTION(not_equal)
MLX_BINARY_FUNCTION(greater)
MLX_BINARY_FUNCTION(greater_equal)
MLX_BINARY_FUNCTION(less)
MLX_BINARY_FUNCTION(less_equal)
MLX_BINARY_FUNCTION(logical_and)
MLX_BINARY_FUNCTION(logical_or)
MLX_BINARY_FUNCTION(bitwise_and)
MLX_BINARY_FUNCTION(bitwise_or)
MLX_BINARY_FUNCTION(bitwise_xor)
MLX_BINARY_FUNCTION(left_shift)
MLX_BINARY_FUNCTION(right_shift)
#undef MLX_BINARY_FUNCTION

// Integers are what floor, ceil and trunc would make of them.
#define MLX_ROUNDING_FUNCTION(name)                           \
  array name(const array& a, StreamOrDevice s) {              \
    if (!is_inexact(a)) {                                     \
      return a;                                               \
    }                                                         \
    return elementwise(ElementwiseOp::name, a, to_stream(s)); \
  }
MLX_ROUNDING_FUNCTION(floor)
MLX_ROUNDING_FUNCTION(ceil)
MLX_ROUNDING_FUNCTION(trunc)
#undef MLX_ROUNDING_FUNCTION
#undef MLX_UNARY_FUNCTION

array round(const array& a, int decimals, StreamOrDevice s) {
  if (decimals == 0) {
    return is_inexact(a) ? elementwise(ElementwiseOp::round, a, to_stream(s))
                         : a;
  }
  Dtype dtype = a.dtype();
  array x = astype(a, is_inexact(a) ? dtype : float32, s);
  array scale = constant(std::pow(10.0, std::abs(decimals)), x);
  array scaled = decimals > 0 ? multiply(x, scale, s) : divide(x, scale, s);
  array rounded = elementwise(ElementwiseOp::round, scaled, to_stream(s));
  array back =
      decimals > 0 ? divide(rounded, scale, s) : multiply(rounded, scale, s);
  return astype(back, dtype, s);
}

array conjugate(const array& a, StreamOrDevice s) {
  return a.dtype() == complex64
             ? elementwise(ElementwiseOp::conjugate, a, to_stream(s))
             : a;
}

array real(const array& a, StreamOrDevice s) {
  return a.dtype() == complex64
             ? elementwise(ElementwiseOp::real, a, to_stream(s))
             : a;
}

array imag(const array& a, StreamOrDevice s) {
  return a.dtype() == complex64
             ? elementwise(ElementwiseOp::imag, a, to_stream(s))
             : zeros_like(a, s);
}

array positive(const array& a, StreamOrDevice) {
  return a;
}

array degrees(const array& a, StreamOrDevice s) {
  array x = astype(a, is_inexact(a) ? a.dtype() : float32, s);
  return multiply(x, constant(180.0 / std::numbers::pi, x), s);
}

array radians(const array& a, StreamOrDevice s) {
  array x = astype(a, is_inexact(a) ? a.dtype() : float32, s);
  return multiply(x, constant(std::numbers::pi / 180.0, x), s);
}

array logical_xor(const array& a, const array& b, StreamOrDevice s) {
  return not_equal(astype(a, bool_, s), astype(b, bool_, s), s);
}

std::vector<array> divmod(const array& a, const array& b, StreamOrDevice s) {
  // Both count as constants for derivatives; remainder() alone does not.
  array rest = remainder(stop_gradient(a, s), stop_gradient(b, s), s);
  return {floor_divide(a, b, s), rest};
}

array where(
    const array& condition, const array& x, const array& y, StreamOrDevice s) {
  Dtype dtype = promote_types(x.dtype(), y.dtype());
  Shape shape = broadcast_shapes(
      condition.shape(), broadcast_shapes(x.shape(), y.shape()));
  return make_node<Elementwise>(
      std::move(shape),
      dtype,
      {astype(condition, bool_, s), astype(x, dtype, s), astype(y, dtype, s)},
      to_stream(s),
      ElementwiseOp::select);
}

array clip(
    const array& a,
    const std::optional<array>& a_min,
    const std::optional<array>& a_max,
    StreamOrDevice s) {
  if (!a_min && !a_max) {
    invalid("clip", "no limit given. Expected at least one of a_min, a_max.");
  }
  array out = a;
  if (a_min) {
    out = maximum(out, *a_min, s);
  }
  return a_max ? minimum(out, *a_max, s) : out;
}

// ---- kinds of numbers

array isnan(const array& a, StreamOrDevice s) {
  return is_inexact(a) ? not_equal(a, a, s) : all_false(a, to_stream(s));
}

array isinf(const array& a, StreamOrDevice s) {
  if (!is_inexact(a)) {
    return all_false(a, to_stream(s));
  }
  if (a.dtype() == complex64) {
    return logical_or(isinf(real(a, s), s), isinf(imag(a, s), s), s);
  }
  return equal(
      abs(a, s), constant(std::numeric_limits<double>::infinity(), a), s);
}

array isposinf(const array& a, StreamOrDevice s) {
  if (!is_inexact(a)) {
    return all_false(a, to_stream(s));
  }
  return equal(a, constant(std::numeric_limits<double>::infinity(), a), s);
}

array isneginf(const array& a, StreamOrDevice s) {
  if (!is_inexact(a)) {
    return all_false(a, to_stream(s));
  }
  return equal(a, constant(-std::numeric_limits<double>::infinity(), a), s);
}

array isfinite(const array& a, StreamOrDevice s) {
  return logical_not(logical_or(isinf(a, s), isnan(a, s), s), s);
}

array nan_to_num(
    const array& a,
    float nan,
    const std::optional<float> posinf,
    const std::optional<float> neginf,
    StreamOrDevice s) {
  if (!is_inexact(a)) {
    return a;
  }
  if (a.dtype() == complex64) {
    invalid(
        "nan_to_num",
        "type not accepted: complex64. Expected a real "
        "type.");
  }
  finfo limits(a.dtype());
  array out = where(isnan(a, s), constant(nan, a), a, s);
  out = where(isposinf(a, s), constant(posinf.value_or(limits.max), a), out, s);
  return where(
      isneginf(a, s), constant(neginf.value_or(limits.min), a), out, s);
}

// ---- closeness

array isclose(
    const array& a,
    const array& b,
    double rtol,
    double atol,
    bool equal_nan,
    StreamOrDevice s) {
  Dtype dtype = promote_types(promote_types(a.dtype(), b.dtype()), float32);
  array x = astype(a, dtype, s);
  array y = astype(b, dtype, s);
  array magnitude = abs(y, s);
  array tolerance =
      add(array(atol, magnitude.dtype()),
          multiply(array(rtol, magnitude.dtype()), magnitude, s),
          s);
  array close = less_equal(abs(subtract(x, y, s), s), tolerance, s);
  // An infinity is close to itself only.
  array infinite = logical_or(isinf(x, s), isinf(y, s), s);
  close = where(infinite, equal(x, y, s), close, s);
  return equal_nan
             ? logical_or(close, logical_and(isnan(x, s), isnan(y, s), s), s)
             : close;
}

array allclose(
    const array& a,
    const array& b,
    double rtol,
    double atol,
    bool equal_nan,
    StreamOrDevice s) {
  return all(isclose(a, b, rtol, atol, equal_nan, s), s);
}

array array_equal(
    const array& a, const array& b, bool equal_nan, StreamOrDevice s) {
  MLX_POSTPONE("array_equal", array_equal(in[0], in[1], equal_nan, s), a, b);
  if (a.shape() != b.shape()) {
    return array(false);
  }
  ElementwiseOp op =
      equal_nan ? ElementwiseOp::equal_nan : ElementwiseOp::equal;
  return all(elementwise(op, a, b, to_stream(s)), s);
}

array operator-(const array& a) {
  return negative(a);
}
array operator~(const array& a) {
  return bitwise_invert(a);
}

}  // namespace mlx::core
