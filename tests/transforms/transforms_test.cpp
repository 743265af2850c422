// vjp, jvp, grad, vmap and their nesting, on small functions with known
// derivatives.
#include "mlx/transforms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "mlx/ops.h"

namespace mlx::core {
namespace {

using Fn = std::function<array(const array&)>;

TEST(Grad, OfAProduct) {
  Fn f = [](const array& x) { return sum(x * x * x); };
  array g = grad(f)(array({1.0f, 2.0f, 3.0f}));
  EXPECT_TRUE(array_equal(g, array({3.0f, 12.0f, 27.0f})).item<bool>());
}

TEST(Grad, ThreeTimes) {
  Fn f = [](const array& x) { return sin(x); };
  array third = grad(grad(grad(f)))(array(0.5f));
  EXPECT_NEAR(third.item<float>(), -std::cos(0.5f), 1e-5);
}

TEST(Grad, SumsOverBroadcastAxes) {
  array x = ones({3, 4});
  Fn f = [&](const array& b) { return sum(x * b); };
  array g = grad(f)(ones({4}));
  EXPECT_TRUE(array_equal(g, full({4}, 3.0f)).item<bool>());
}

TEST(Grad, StopsWhereTold) {
  Fn f = [](const array& x) { return sum(stop_gradient(x) * x); };
  EXPECT_EQ(grad(f)(array({2.0f}, {1}, float32)).item<float>(), 2.0f);
}

TEST(Grad, NeedsAScalar) {
  Fn f = [](const array& x) { return x * x; };
  EXPECT_THROW(grad(f)(ones({2})), std::invalid_argument);
}

TEST(Vjp, ThroughSeveralOutputs) {
  ArrayFn f = [](const std::vector<array>& in) { return split(in[0], 2); };
  auto [out, grads] = vjp(f, {arange(4.0)}, {full({2}, 3.0f), full({2}, 5.0f)});
  EXPECT_TRUE(
      array_equal(grads[0], array({3.0f, 3.0f, 5.0f, 5.0f})).item<bool>());
}

TEST(Vjp, EvaluationInsideKeepsTheGraph) {
  Fn f = [](const array& x) {
    array y = x * x;
    eval(y);
    return sum(y * x);
  };
  EXPECT_EQ(grad(f)(array({2.0f}, {1}, float32)).item<float>(), 12.0f);
}

TEST(Jvp, AgreesWithVjp) {
  Fn f = [](const array& x) { return exp(x) * tanh(x) / (x + array(2.0f)); };
  array x(0.3f);
  float forward = jvp(f, x, array(1.0f)).second.item<float>();
  float reverse = vjp(f, x, array(1.0f)).second.item<float>();
  EXPECT_NEAR(forward, reverse, 1e-6);
}

TEST(Vmap, OverTheFirstAxis) {
  Fn f = [](const array& x) { return sum(x); };
  array out = vmap(f)(reshape(arange(6.0), {3, 2}));
  EXPECT_TRUE(array_equal(out, array({1.0f, 5.0f, 9.0f})).item<bool>());
}

TEST(Vmap, OverAnotherAxis) {
  Fn f = [](const array& x) { return x * array(2.0f); };
  array out = vmap(f, 1, 0)(reshape(arange(6.0), {3, 2}));
  EXPECT_EQ(out.shape(), (Shape{2, 3}));
  EXPECT_EQ(take(flatten(out), 1, 0).item<float>(), 4.0f);
}

TEST(Vmap, OfGradAndGradOfVmap) {
  Fn f = [](const array& x) { return sin(x); };
  array xs = arange(4.0);
  array a = vmap(grad(f))(xs);
  Fn g = [&](const array& v) { return sum(vmap(f)(v)); };
  array b = grad(g)(xs);
  EXPECT_TRUE(allclose(a, b).item<bool>());
  EXPECT_TRUE(allclose(a, cos(xs)).item<bool>());
}

TEST(Custom, RulesReplaceTheDerived) {
  ArrayFn f = custom_vjp(
      [](const std::vector<array>& in) {
        return std::vector<array>{in[0] * in[0]};
      },
      [](const std::vector<array>& primals,
         const std::vector<array>& cotangents,
         const std::vector<array>&) {
        return std::vector<array>{cotangents[0] * primals[0] * array(100.0f)};
      });
  Fn g = [&](const array& x) { return f({x})[0]; };
  EXPECT_EQ(grad(g)(array(3.0f)).item<float>(), 300.0f);
}

TEST(Checkpoint, GivesTheSameGradient) {
  ArrayFn f = [](const std::vector<array>& in) {
    return std::vector<array>{sum(exp(in[0]) * in[0])};
  };
  Fn plain = [&](const array& x) { return f({x})[0]; };
  Fn saved = [&](const array& x) { return checkpoint(f)({x})[0]; };
  array x({0.1f, 0.2f});
  EXPECT_TRUE(allclose(grad(plain)(x), grad(saved)(x)).item<bool>());
}

}  // namespace
}  // namespace mlx::core
