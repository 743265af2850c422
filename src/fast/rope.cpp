// Rotary position encoding: checks, the composed form, the derivative.
#include "fast/rope.h"

#include <cmath>

#include "graph/postponed.h"
#include "mlx/fast.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core::fast {

namespace {

// Angles (1 or B, 1s, T, dims / 2) in float32.
array angles(const RoPEParams& p, const std::vector<array>& in, Stream s) {
  const array& x = in[0];
  int t = x.shape(-2);
  array offset = astype(in[1], float32, s);
  array positions = arange(0.0, t, float32, s);
  if (offset.ndim() == 1) {
    Shape column(x.ndim(), 1);
    column[0] = offset.shape(0);
    positions =
        add(reshape(offset, column, s), reshape(positions, {t, 1}, s), s);
  } else {
    positions = reshape(add(positions, offset, s), {t, 1}, s);
  }
  positions = multiply(positions, array(p.scale), s);
  array inverse =
      in.size() == 3
          ? reciprocal(in[2], s)
          : exp(multiply(
                    arange(0.0, p.dims / 2, float32, s),
                    array(-std::log(p.base) / (static_cast<float>(p.dims) / 2)),
                    s),
                s);
  return multiply(positions, inverse, s);
}

array rotate_composed(
    const RoPEParams& p, const std::vector<array>& in, Stream s) {
  const array& x = in[0];
  array theta = angles(p, in, s);
  array c = astype(cos(theta, s), x.dtype(), s);
  array n = sin(theta, s);
  n = astype(p.forward ? n : negative(n, s), x.dtype(), s);
  int half = p.dims / 2;
  auto part = [&](int first, int last, int step) {
    Shape start(x.ndim(), 0);
    Shape stop = x.shape();
    Shape strides(x.ndim(), 1);
    start.back() = first;
    stop.back() = last;
    strides.back() = step;
    return slice(x, start, stop, strides, s);
  };
  array a = p.traditional ? part(0, p.dims, 2) : part(0, half, 1);
  array b = p.traditional ? part(1, p.dims, 2) : part(half, p.dims, 1);
  array ra = subtract(multiply(a, c, s), multiply(b, n, s), s);
  array rb = add(multiply(a, n, s), multiply(b, c, s), s);
  std::vector<array> pieces;
  if (p.traditional) {
    Shape merged = x.shape();
    merged.back() = p.dims;
    pieces.push_back(reshape(stack({ra, rb}, -1, s), merged, s));
  } else {
    pieces = {ra, rb};
  }
  if (p.dims < x.shape(-1)) {
    pieces.push_back(part(p.dims, x.shape(-1), 1));
  }
  return concatenate(pieces, -1, s);
}

array rope_node(
    const std::vector<array>& inputs, const RoPEParams& params, Stream s) {
  ArrayFn fallback = [params, s](const std::vector<array>& in) {
    return std::vector<array>{rotate_composed(params, in, s)};
  };
  return make_node<RoPE>(
      inputs[0].shape(), inputs[0].dtype(), inputs, s, params, fallback);
}

}  // namespace

std::vector<array> RoPE::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  // The adjoint of a rotation turns back.
  RoPEParams back = params();
  back.forward = !back.forward;
  std::vector<array> grads;
  for (int argnum : argnums) {
    if (argnum != 0) {
      invalid("rope", "no derivative with respect to offset or freqs.");
    }
    std::vector<array> in = primals;
    in[0] = cotangents[0];
    grads.push_back(rope_node(in, back, stream()));
  }
  return grads;
}

array rope(
    const array& x,
    int dims,
    bool traditional,
    std::optional<float> base,
    float scale,
    const array& offset,
    const std::optional<array>& freqs,
    StreamOrDevice s) {
  if (freqs) {
    MLX_POSTPONE(
        "rope",
        rope(in[0], dims, traditional, base, scale, in[1], in[2], s),
        x,
        offset,
        *freqs);
  } else {
    MLX_POSTPONE(
        "rope",
        rope(in[0], dims, traditional, base, scale, in[1], std::nullopt, s),
        x,
        offset);
  }
  if (x.ndim() < 3) {
    invalid(
        "rope",
        "an array of ",
        x.ndim(),
        " dimensions. Expected (B, ..., T, D).");
  }
  if (!issubdtype(x.dtype(), floating)) {
    invalid(
        "rope",
        "type not accepted: ",
        x.dtype(),
        ". Expected a real floating type.");
  }
  if (dims <= 0 || dims % 2 != 0 || dims > x.shape(-1)) {
    invalid(
        "rope",
        "bad dims: ",
        dims,
        " for ",
        x.shape(-1),
        " features. Expected an even number of at most that.");
  }
  if (base.has_value() == freqs.has_value()) {
    invalid(
        "rope",
        "base and freqs ",
        base ? "are both" : "are not",
        " given. Expected exactly one.");
  }
  if (offset.ndim() > 1 || (offset.size() != 1 &&
                            offset.size() != static_cast<size_t>(x.shape(0)))) {
    invalid(
        "rope",
        "bad offset shape: ",
        offset.shape(),
        ". Expected a scalar or one entry for each of ",
        x.shape(0),
        " batches.");
  }
  if (!issubdtype(offset.dtype(), integer)) {
    invalid(
        "rope",
        "the offset is of type ",
        offset.dtype(),
        ". Expected an integer type.");
  }
  Stream stream = to_stream(s);
  array position = offset.size() == 1 ? reshape(offset, {}, stream) : offset;
  std::vector<array> inputs = {x, astype(position, int32, stream)};
  if (freqs) {
    if (freqs->shape() != Shape{dims / 2}) {
      invalid(
          "rope",
          "bad freqs shape: ",
          freqs->shape(),
          ". Expected (",
          dims / 2,
          ",).");
    }
    inputs.push_back(astype(*freqs, float32, stream));
  }
  RoPEParams params{dims, traditional, base.value_or(0.0f), scale, true};
  return rope_node(inputs, params, stream);
}

array rope(
    const array& x,
    int dims,
    bool traditional,
    std::optional<float> base,
    float scale,
    int offset,
    const std::optional<array>& freqs,
    StreamOrDevice s) {
  return rope(x, dims, traditional, base, scale, array(offset), freqs, s);
}

}  // namespace mlx::core::fast
