// rms_norm and layer_norm: checks, and the compositions that their derivatives
// come from.
#include "fast/norms.h"

#include <algorithm>

#include "graph/postponed.h"
#include "mlx/fast.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core::fast {

namespace {

using Inputs = std::vector<array>;

array wide(const array& x, Stream s) {
  return astype(x, x.dtype() == float64 ? float64 : float32, s);
}

array scaled_and_shifted(
    array y, const NormParams& p, const Inputs& in, Stream s) {
  if (p.has_weight) {
    y = multiply(y, in[1], s);
  }
  return p.has_bias ? add(y, in.back(), s) : y;
}

// x / sqrt(mean(x^2) + eps), of a centred x also layer_norm.
array normalized(const array& x, float eps, Dtype dtype, Stream s) {
  array power = mean(square(x, s), -1, true, s);
  array factor = rsqrt(add(power, array(eps, x.dtype()), s), s);
  return astype(multiply(x, factor, s), dtype, s);
}

array rms_composed(const NormParams& p, const Inputs& in, Stream s) {
  array y = normalized(wide(in[0], s), p.eps, in[0].dtype(), s);
  return scaled_and_shifted(y, p, in, s);
}

array layer_composed(const NormParams& p, const Inputs& in, Stream s) {
  array x = wide(in[0], s);
  array centered = subtract(x, mean(x, -1, true, s), s);
  array y = normalized(centered, p.eps, in[0].dtype(), s);
  return scaled_and_shifted(y, p, in, s);
}

template <typename Op>
array node(const Inputs& in, const NormParams& params, Stream s) {
  auto* composed =
      std::is_same_v<Op, RMSNorm> ? &rms_composed : &layer_composed;
  ArrayFn fallback = [composed, params, s](const Inputs& given) {
    return Inputs{composed(params, given, s)};
  };
  return make_node<Op>(
      in[0].shape(), in[0].dtype(), in, s, params, std::move(fallback));
}

// Batches of x alone are more rows of the same operation.
template <typename Op>
Batched batched_norm(
    Op& op, const Inputs& inputs, const std::vector<int>& axes) {
  bool only_x =
      axes[0] >= 0 &&
      std::all_of(axes.begin() + 1, axes.end(), [](int a) { return a < 0; });
  if (!only_x) {
    return op.Fused<Op, NormParams>::vmap(inputs, axes);
  }
  Inputs in = inputs;
  in[0] = batch_to_front(in[0], axes[0], op.stream());
  return {{node<Op>(in, op.params(), op.stream())}, {0}};
}

void check_parameter(
    const char* op,
    const char* name,
    const array& x,
    const std::optional<array>& parameter) {
  if (!parameter) {
    return;
  }
  if (parameter->ndim() != 1 || parameter->shape(0) != x.shape(-1)) {
    invalid(
        op,
        name,
        " has shape ",
        parameter->shape(),
        " for ",
        x.shape(-1),
        " features. Expected one entry a feature.");
  }
}

Inputs given(
    const array& x,
    const std::optional<array>& weight,
    const std::optional<array>& bias) {
  Inputs in = {x};
  for (const auto* parameter : {&weight, &bias}) {
    if (*parameter) {
      in.push_back(**parameter);
    }
  }
  return in;
}

template <typename Op>
array norm(
    const char* op,
    const array& x,
    const std::optional<array>& weight,
    const std::optional<array>& bias,
    float eps,
    StreamOrDevice s) {
  if (detail::in_shapeless_tracing()) {
    Inputs all = given(x, weight, bias);
    bool weighs = weight.has_value();
    bool shifts = bias.has_value();
    if (detail::lengths_open(all)) {
      return detail::postpone(
          op, all, to_stream(s), [=, s = to_stream(s)](const Inputs& in) {
            std::optional<array> w, b;
            if (weighs) {
              w = in[1];
            }
            if (shifts) {
              b = in.back();
            }
            return Inputs{norm<Op>(op, in[0], w, b, eps, s)};
          })[0];
    }
  }
  if (x.ndim() == 0) {
    invalid(op, "x has no axes. Expected at least one.");
  }
  check_parameter(op, "weight", x, weight);
  check_parameter(op, "bias", x, bias);
  Inputs in = given(x, weight, bias);
  Dtype dtype = result_type(in);
  if (!issubdtype(dtype, floating)) {
    invalid(
        op, "type not accepted: ", dtype, ". Expected a real floating type.");
  }
  Stream stream = to_stream(s);
  for (array& a : in) {
    a = astype(a, dtype, stream);
  }
  NormParams params{eps, weight.has_value(), bias.has_value()};
  return node<Op>(in, params, stream);
}

}  // namespace

Batched RMSNorm::vmap(const Inputs& inputs, const std::vector<int>& axes) {
  return batched_norm(*this, inputs, axes);
}

Batched LayerNorm::vmap(const Inputs& inputs, const std::vector<int>& axes) {
  return batched_norm(*this, inputs, axes);
}

array rms_norm(
    const array& x,
    const std::optional<array>& weight,
    float eps,
    StreamOrDevice s) {
  return norm<RMSNorm>("rms_norm", x, weight, std::nullopt, eps, s);
}

array layer_norm(
    const array& x,
    const std::optional<array>& weight,
    const std::optional<array>& bias,
    float eps,
    StreamOrDevice s) {
  return norm<LayerNorm>("layer_norm", x, weight, bias, eps, s);
}

}  // namespace mlx::core::fast
