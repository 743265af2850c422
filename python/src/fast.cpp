// The module mlx.core.fast: fused operations of neural networks.
#include "mlx/fast.h"

#include <nanobind/stl/variant.h>

#include <variant>

#include "casters.h"
#include "custom_kernel.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using OptionalArray = std::optional<mx::array>;
using Stream = mx::StreamOrDevice;

void bind_norms(nb::module_& m) {
  m.def(
      "rms_norm",
      mx::fast::rms_norm,
      "x"_a,
      "weight"_a.none(),
      "eps"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def rms_norm(x: array, weight: array | None, eps: float, *, "
              "stream: StreamOrDevice = None) -> array"),
      "``x / sqrt(mean(x^2) + eps) * weight`` over the last axis.\n\n"
      "Args:\n"
      "    x (array): At least one axis.\n"
      "    weight (array, optional): One number for each feature.\n"
      "    eps (float): Keeps the root away from zero.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The promoted type of x and weight; computed in float32.\n\n"
      "Example:\n"
      "    >>> mx.fast.rms_norm(mx.array([3.0, 4.0]), None, 0.0)\n"
      "    array([0.848528, 1.13137], dtype=float32)");
  m.def(
      "layer_norm",
      mx::fast::layer_norm,
      "x"_a,
      "weight"_a.none(),
      "bias"_a.none(),
      "eps"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def layer_norm(x: array, weight: array | None, bias: array | "
              "None, eps: float, *, stream: StreamOrDevice = None) -> array"),
      "``(x - mean) / sqrt(var + eps) * weight + bias`` over the last "
      "axis.\n\n"
      "Args:\n"
      "    x (array): At least one axis.\n"
      "    weight (array, optional): One number for each feature.\n"
      "    bias (array, optional): One number for each feature.\n"
      "    eps (float): Keeps the root away from zero.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The promoted type of all three; computed in float32.\n\n"
      "Example:\n"
      "    >>> mx.fast.layer_norm(mx.array([1.0, 3.0]), None, None, 0.0)\n"
      "    array([-1, 1], dtype=float32)");
}

void bind_rope(nb::module_& m) {
  m.def(
      "rope",
      [](const mx::array& a,
         int dims,
         bool traditional,
         std::optional<float> base,
         float scale,
         const std::variant<int, mx::array>& offset,
         const OptionalArray& freqs,
         const Stream& s) {
        return std::visit(
            [&](const auto& first) {
              return mx::fast::rope(
                  a, dims, traditional, base, scale, first, freqs, s);
            },
            offset);
      },
      "a"_a,
      "dims"_a,
      nb::kw_only(),
      "traditional"_a,
      "base"_a.none(),
      "scale"_a,
      "offset"_a,
      "freqs"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def rope(a: array, dims: int, *, traditional: bool, base: float "
              "| None, scale: float, offset: int | array, freqs: array | None "
              "= None, stream: StreamOrDevice = None) -> array"),
      "Rotary position encoding.\n\n"
      "Feature pair i of token t turns by the angle\n"
      "``(offset + t) * scale * base^(-2i / dims)``.\n\n"
      "Args:\n"
      "    a (array): Tokens along the axis before the last, ``(B, ..., T, "
      "D)``.\n"
      "    dims (int): How many features turn; even, at most D.\n"
      "    traditional (bool): Pairs are neighbours, instead of features of\n"
      "        the first and the second half.\n"
      "    base (float, optional): Of the angles; exactly one of base and\n"
      "        freqs is given.\n"
      "    scale (float): Of the positions.\n"
      "    offset (int or array): The position of the first token; a scalar\n"
      "        or an array of one entry a batch.\n"
      "    freqs (array, optional): What positions are divided by instead,\n"
      "        ``(dims / 2,)``.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> a = mx.array([[[1.0, 0.0]]])\n"
      "    >>> mx.fast.rope(a, 2, traditional=True, base=10000.0, scale=1.0,\n"
      "    ...              offset=1)\n"
      "    array([[[0.540302, 0.841471]]], dtype=float32)");
}

using Mask = std::optional<std::variant<std::string, mx::array>>;

mx::array attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    float scale,
    const Mask& mask,
    const OptionalArray& sinks,
    bool force_fused,
    const Stream& s) {
  std::string mode;
  OptionalArray values;
  if (mask && std::holds_alternative<mx::array>(*mask)) {
    mode = "array";
    values = std::get<mx::array>(*mask);
  } else if (mask) {
    mode = std::get<std::string>(*mask);
    if (mode != "causal") {
      mx::invalid(
          "scaled_dot_product_attention",
          "unknown mask: \"",
          mode,
          "\". Expected None, \"causal\" or an array.");
    }
  }
  return mx::fast::scaled_dot_product_attention(
      q, k, v, scale, mode, std::move(values), sinks, force_fused, s);
}

void bind_attention(nb::module_& m) {
  m.def(
      "scaled_dot_product_attention",
      attention,
      "q"_a,
      "k"_a,
      "v"_a,
      nb::kw_only(),
      "scale"_a,
      "mask"_a = nb::none(),
      "sinks"_a = nb::none(),
      "force_fused"_a = false,
      "stream"_a = nb::none(),
      nb::sig("def scaled_dot_product_attention(q: array, k: array, v: array, "
              "*, scale: float, mask: None | str | array = None, sinks: array "
              "| None = None, force_fused: bool = False, stream: "
              "StreamOrDevice = None) -> array"),
      "``softmax(scale * q @ k^T + mask) @ v`` for several heads.\n\n"
      "Args:\n"
      "    q (array): Queries, ``(B, Nq, Tq, D)``.\n"
      "    k (array): Keys, ``(B, Nkv, Tkv, D)``; Nq is a multiple of Nkv and\n"
      "        neighbouring query heads share a head of keys.\n"
      "    v (array): Values, ``(B, Nkv, Tkv, Dv)``.\n"
      "    scale (float): Usually ``D ** -0.5``.\n"
      "    mask (str or array, optional): \"causal\": query i sees keys up to\n"
      "        i + Tkv - Tq. A bool array: keys to keep. Another array: added\n"
      "        to the scores. Broadcasts to ``(B, Nq, Tq, Tkv)``.\n"
      "    sinks (array, optional): A score for each query head, ``(Nq,)``,\n"
      "        that takes part in the softmax and has the value zero.\n"
      "    force_fused (bool): Raise rather than compose. Default: False.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: ``(B, Nq, Tq, Dv)``, the promoted type of q, k and v.\n\n"
      "Example:\n"
      "    >>> q = mx.ones((1, 1, 2, 4))\n"
      "    >>> v = mx.array([[[[0.0], [2.0]]]])\n"
      "    >>> mx.fast.scaled_dot_product_attention(\n"
      "    ...     q, q, v, scale=0.5, mask=\"causal\").flatten()\n"
      "    array([0, 1], dtype=float32)");
}

}  // namespace

void init_fast(nb::module_& parent) {
  nb::module_ m =
      parent.def_submodule("fast", "Fused operations of neural networks.");
  bind_norms(m);
  bind_rope(m);
  bind_attention(m);
  init_custom_kernels(m);
}

}  // namespace mlx::python
