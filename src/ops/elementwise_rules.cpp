// Derivatives of the elementwise operations, read from their rows.
#include <functional>

#include "graph/stream_scope.h"
#include "graph/tracing.h"
#include "mlx/ops.h"
#include "ops/elementwise_primitive.h"
#include "ops/rules.h"
#include "ops/views.h"

namespace mlx::core {

namespace {

// What a row's formula sees.
struct Rule {
  const array& t;
  const std::vector<array>& in;
  const array& y;

  array k(double value) const { return array(value, y.dtype()); }
};

using RuleFn = array (*)(const Rule&);

struct Zero {};
[[maybe_unused]] constexpr Zero ZERO;
// Comparisons have tangents too: in the type of the operand's, since bool has
// no arithmetic to go on with.
array as_array(Zero, const Rule& r) {
  return zeros_like(r.y, r.t.dtype());
}
// exp(a) / (exp(a) + exp(b)), y = logaddexp(a, b).
array share(const array& a, const array& b, const array& y) {
  return y.dtype() == complex64 ? exp(subtract(a, y)) : sigmoid(subtract(a, b));
}
// |dy/dx| of arccosh is 1 over this. The product form is right on the whole
// complex plane; over the reals the other one differs by no more than half an
// ulp of x would.
array arccosh_slope(const array& x) {
  array one(1, x.dtype());
  return x.dtype() == complex64
             ? multiply(sqrt(subtract(x, one)), sqrt(add(x, one)))
             : sqrt(subtract(square(x), one));
}
array as_array(array value, const Rule&) {
  return value;
}

// sign(x) = x / |x| of a complex number turns with what of t is at right angles
// to it; the rule is its own adjoint.
array sign_tangent(const array& t, const array& x, const array& y) {
  if (x.dtype() != complex64) {
    return zeros_like(y);
  }
  array size = abs(x);
  array at_zero = equal(size, array(0.0f));
  array across = t - y * real(conjugate(y) * t);
  array none(0.0f, complex64);
  return where(at_zero, none, across / where(at_zero, array(1.0f), size));
}

// One row of functions an operation: by operand, forward and reverse.
struct Rules {
  RuleFn forward[3];
  RuleFn reverse[3];
};

#define MLX_RULE(names, formula)                      \
  [](const Rule& rule) -> array {                     \
    const array& t = rule.t;                          \
    const array& y = rule.y;                          \
    auto k = [&rule](double v) { return rule.k(v); }; \
    (void)t, (void)y, (void)k;                        \
    names return as_array(formula, rule);             \
  }
#define MLX_X                  \
  const array& x = rule.in[0]; \
  (void)x;
#define MLX_AB                 \
  const array& a = rule.in[0]; \
  const array& b = rule.in[1]; \
  (void)a, (void)b;

constexpr Rules kRules[] = {
#define UNARY(name, Class, accepts, result, value, tangent, summary) \
  {{MLX_RULE(MLX_X, (tangent)), nullptr, nullptr},                   \
   {MLX_RULE(MLX_X, (tangent)), nullptr, nullptr}},
#define UNARY_PAIR(name, Class, accepts, result, value, jvp, vjp, summary) \
  {{MLX_RULE(MLX_X, (jvp)), nullptr, nullptr},                             \
   {MLX_RULE(MLX_X, (vjp)), nullptr, nullptr}},
#define BINARY(name, Class, accepts, result, value, ta, tb, summary) \
  {{MLX_RULE(MLX_AB, (ta)), MLX_RULE(MLX_AB, (tb)), nullptr},        \
   {MLX_RULE(MLX_AB, (ta)), MLX_RULE(MLX_AB, (tb)), nullptr}},
#define TERNARY(name, Class, accepts, result, value, ta, tb, tc, summary)    \
  {{MLX_RULE(MLX_AB, (ta)), MLX_RULE(MLX_AB, (tb)), MLX_RULE(MLX_AB, (tc))}, \
   {MLX_RULE(MLX_AB, (ta)), MLX_RULE(MLX_AB, (tb)), MLX_RULE(MLX_AB, (tc))}},
#include "ops/elementwise.def"
};

// Rows of UNARY_PAIR state their reverse rule themselves.
bool states_reverse(ElementwiseOp op) {
  switch (op) {
#define UNARY(...)
#define UNARY_PAIR(name, ...) case ElementwiseOp::name:
#include "ops/elementwise.def"
    return true;
    default:
      return false;
  }
}

// Whether operand `argnum` has the result's shape at any lengths: all others
// are single values.
bool of_result_shape(const std::vector<array>& operands, int argnum) {
  if (operands.size() == 1 || !detail::in_shapeless_tracing()) {
    return operands.size() == 1;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].id() != operands[argnum].id() && operands[i].ndim() != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

array elementwise_tangent(
    ElementwiseOp op,
    int argnum,
    bool reverse,
    const array& t,
    const std::vector<array>& inputs,
    const array& y) {
  const Rules& rules = kRules[static_cast<int>(op)];
  bool adjoint = reverse && y.dtype() == complex64 && !states_reverse(op);
  array in = adjoint ? conjugate(t) : t;
  RuleFn f = (reverse ? rules.reverse : rules.forward)[argnum];
  array out = f(Rule{in, inputs, y});
  return adjoint ? conjugate(out) : out;
}

std::vector<array> Elementwise::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  detail::StreamScope scope(stream());
  Shape shape = output_shapes(primals)[0];
  Dtype dtype = elementwise_result_dtype(op(), primals.back().dtype());
  array y(shape, dtype, std::make_shared<Elementwise>(stream(), op()), primals);
  std::vector<array> total;
  for (size_t i = 0; i < argnums.size(); ++i) {
    array part =
        elementwise_tangent(op(), argnums[i], false, tangents[i], primals, y);
    part = dtype == bool_ ? part : astype(part, dtype);
    total = {total.empty() ? part : add(total[0], part)};
  }
  return {
      argnums.size() == 1 && of_result_shape(primals, argnums[0])
          ? total[0]
          : broadcast_like(total[0], y, stream())};
}

std::vector<array> Elementwise::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>& outputs) {
  detail::StreamScope scope(stream());
  std::vector<array> grads;
  for (int argnum : argnums) {
    const array& primal = primals[argnum];
    array g = elementwise_tangent(
        op(), argnum, true, cotangents[0], primals, outputs[0]);
    g = astype(g, primal.dtype());
    if (!detail::in_shapeless_tracing()) {
      g = broadcast_to(g, outputs[0].shape());
    }
    if (!of_result_shape(primals, argnum)) {
      g = sum_like(g, primal, stream());
    }
    grads.push_back(g);
  }
  return grads;
}

std::pair<std::vector<array>, std::vector<int>> Elementwise::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  int ndim = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ndim = std::max(ndim, static_cast<int>(inputs[i].ndim()) - (axes[i] >= 0));
  }
  std::vector<array> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(batch_to_front(inputs[i], axes[i], ndim, stream()));
  }
  Shape shape = output_shapes(in)[0];
  Dtype dtype = elementwise_result_dtype(op(), inputs.back().dtype());
  return {
      {array(
          std::move(shape),
          dtype,
          std::make_shared<Elementwise>(stream(), op()),
          in)},
      {0}};
}

std::vector<Shape> Elementwise::output_shapes(
    const std::vector<array>& inputs) {
  Shape shape = inputs[0].shape();
  for (size_t i = 1; i < inputs.size(); ++i) {
    shape = broadcast_shapes(shape, inputs[i].shape());
  }
  return {shape};
}

}  // namespace mlx::core
