// Evaluation, and the function transforms vjp, jvp, grad and vmap.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"

namespace mlx::core {

/// Schedules the computation of `outputs` and returns. A later read waits.
MLX_API void async_eval(std::vector<array> outputs);
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void async_eval(Arrays&&... outputs) {
  async_eval(std::vector<array>{std::forward<Arrays>(outputs)...});
}

/// Computes `outputs` and all they need. Raises the first error of a
/// kernel; what was computed before it stays computed.
MLX_API void eval(std::vector<array> outputs);
template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
void eval(Arrays&&... outputs) {
  eval(std::vector<array>{std::forward<Arrays>(outputs)...});
}

using ArrayFn = std::function<std::vector<array>(const std::vector<array>&)>;

/// {outputs, cotangents of the primals} of `fun` at `primals`. Raises
/// std::invalid_argument when counts or shapes do not match. Outputs that
/// are the result of stop_gradient take no cotangent.
MLX_API std::pair<std::vector<array>, std::vector<array>> vjp(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& primals,
    const std::vector<array>& cotangents);
MLX_API std::pair<array, array> vjp(
    const std::function<array(const array&)>& fun,
    const array& primal,
    const array& cotangent);

/// {outputs, tangents of the outputs} of `fun` at `primals`.
MLX_API std::pair<std::vector<array>, std::vector<array>> jvp(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<array>& primals,
    const std::vector<array>& tangents);
MLX_API std::pair<array, array> jvp(
    const std::function<array(const array&)>& fun,
    const array& primal,
    const array& tangent);

using ValueAndGradFn =
    std::function<std::pair<std::vector<array>, std::vector<array>>(
        const std::vector<array>&)>;
using SimpleValueAndGradFn = std::function<std::pair<array, std::vector<array>>(
    const std::vector<array>&)>;

/// A function that gives {outputs, gradients of the first output, which must
/// be a scalar, with respect to the arguments `argnums`}.
MLX_API ValueAndGradFn value_and_grad(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<int>& argnums);
ValueAndGradFn inline value_and_grad(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    int argnum = 0) {
  return value_and_grad(fun, std::vector<int>{argnum});
}
std::function<std::pair<array, array>(const array&)> inline value_and_grad(
    const std::function<array(const array&)>& fun) {
  return [fun](const array& input) {
    auto wrapped = [fun](const std::vector<array>& in) {
      return std::vector<array>{fun(in[0])};
    };
    auto [values, grads] =
        value_and_grad(ArrayFn(wrapped), std::vector<int>{0})({input});
    return std::make_pair(values[0], grads[0]);
  };
}
SimpleValueAndGradFn inline value_and_grad(
    const std::function<array(const std::vector<array>&)>& fun,
    const std::vector<int>& argnums) {
  return [fun, argnums](const std::vector<array>& inputs) {
    auto wrapped = [fun](const std::vector<array>& in) {
      return std::vector<array>{fun(in)};
    };
    auto [values, grads] = value_and_grad(ArrayFn(wrapped), argnums)(inputs);
    return std::make_pair(values[0], grads);
  };
}
SimpleValueAndGradFn inline value_and_grad(
    const std::function<array(const std::vector<array>&)>& fun,
    int argnum = 0) {
  return value_and_grad(fun, std::vector<int>{argnum});
}

std::function<std::vector<array>(const std::vector<array>&)> inline grad(
    const std::function<array(const std::vector<array>&)>& fun,
    const std::vector<int>& argnums) {
  auto both = value_and_grad(fun, argnums);
  return [both](const std::vector<array>& in) { return both(in).second; };
}
std::function<std::vector<array>(const std::vector<array>&)> inline grad(
    const std::function<array(const std::vector<array>&)>& fun,
    int argnum = 0) {
  return grad(fun, std::vector<int>{argnum});
}
std::function<array(const array&)> inline grad(
    const std::function<array(const array&)>& fun) {
  auto both = value_and_grad(fun);
  return [both](const array& in) { return both(in).second; };
}

/// `fun` over a batch: axis `in_axis` of the inputs (-1 for none; negative
/// axes are counted by the callers of the vector form) becomes `out_axis` of
/// the outputs.
MLX_API std::function<array(const array&)> vmap(
    const std::function<array(const array&)>& fun,
    int in_axis = 0,
    int out_axis = 0);
MLX_API std::function<array(const array&, const array&)> vmap(
    const std::function<array(const array&, const array&)>& fun,
    int in_axis_a = 0,
    int in_axis_b = 0,
    int out_axis = 0);
MLX_API std::function<std::vector<array>(const std::vector<array>&)> vmap(
    const std::function<std::vector<array>(const std::vector<array>&)>& fun,
    const std::vector<int>& in_axes = {},
    const std::vector<int>& out_axes = {});

/// `fun` with derivative and batch rules of one's own; a missing rule is
/// derived from `fun`. fun_vjp(primals, cotangents, outputs), fun_jvp(primals,
/// tangents, argnums), fun_vmap(inputs, axes) as in Primitive.
MLX_API std::function<std::vector<array>(const std::vector<array>&)>
custom_function(
    std::function<std::vector<array>(const std::vector<array>&)> fun,
    std::optional<std::function<std::vector<array>(
        const std::vector<array>&,
        const std::vector<array>&,
        const std::vector<array>&)>> fun_vjp = std::nullopt,
    std::optional<std::function<std::vector<array>(
        const std::vector<array>&,
        const std::vector<array>&,
        const std::vector<int>&)>> fun_jvp = std::nullopt,
    std::optional<std::function<std::pair<std::vector<array>, std::vector<int>>(
        const std::vector<array>&, const std::vector<int>&)>> fun_vmap =
        std::nullopt);

MLX_API std::function<std::vector<array>(const std::vector<array>&)> custom_vjp(
    std::function<std::vector<array>(const std::vector<array>&)> fun,
    std::function<std::vector<array>(
        const std::vector<array>&,
        const std::vector<array>&,
        const std::vector<array>&)> fun_vjp);

/// `fun`, its intermediate values computed again for the derivative instead
/// of kept.
MLX_API std::function<std::vector<array>(const std::vector<array>&)> checkpoint(
    std::function<std::vector<array>(const std::vector<array>&)> fun);

}  // namespace mlx::core
