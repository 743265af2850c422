// Scaled dot-product attention: checks and the composed form.
#include "fast/attention.h"

#include <algorithm>
#include <limits>

#include "graph/postponed.h"
#include "mlx/fast.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core::fast {

namespace {

constexpr const char* kOp = "scaled_dot_product_attention";

// (B, Nkv, group, Tq, .) from (B, Nq, Tq, .), so that a group shares its keys.
array grouped(const array& x, int num_kv_heads, Stream s) {
  return unflatten(x, 1, {num_kv_heads, x.shape(1) / num_kv_heads}, s);
}

// A mask or sinks with the head axis split like the queries'.
array grouped_mask(const array& mask, int num_kv_heads, Stream s) {
  return mask.shape(1) == 1 ? expand_dims(mask, 2, s)
                            : grouped(mask, num_kv_heads, s);
}

array masked(const array& scores, const array& keep, Stream s) {
  array least(
      static_cast<float>(std::numeric_limits<float>::lowest()), scores.dtype());
  return where(keep, scores, least, s);
}

array causal_mask(int queries, int keys, Stream s) {
  array row = arange(keys - queries, keys, s);
  return greater_equal(expand_dims(row, 1, s), arange(keys, s), s);
}

array composed(
    const AttentionParams& p, const std::vector<array>& in, Stream s) {
  int kv_heads = in[1].shape(1);
  Dtype compute = in[0].dtype() == float64 ? float64 : float32;
  array q = grouped(astype(in[0], compute, s), kv_heads, s);
  array k = expand_dims(astype(in[1], compute, s), 2, s);
  array v = expand_dims(astype(in[2], compute, s), 2, s);
  q = multiply(q, array(p.scale, compute), s);
  array scores = matmul(q, swapaxes(k, -1, -2, s), s);
  if (p.causal) {
    scores = masked(scores, causal_mask(in[0].shape(2), in[1].shape(2), s), s);
  }
  if (p.has_mask) {
    array mask = grouped_mask(in[3], kv_heads, s);
    scores =
        mask.dtype() == bool_ ? masked(scores, mask, s) : add(scores, mask, s);
  }
  int keys = scores.shape(-1);
  if (p.has_sinks) {
    array sinks = astype(in.back(), compute, s);
    sinks = reshape(sinks, {1, kv_heads, -1, 1, 1}, s);
    Shape column = scores.shape();
    column.back() = 1;
    scores = concatenate({scores, broadcast_to(sinks, column, s)}, -1, s);
  }
  array weights = softmax(scores, -1, true, s);
  if (p.has_sinks) {
    Shape stop = weights.shape();
    stop.back() = keys;
    weights = slice(weights, Shape(stop.size(), 0), stop, s);
  }
  array out = flatten(matmul(weights, v, s), 1, 2, s);
  return astype(out, in[0].dtype(), s);
}

void check_shapes(const array& q, const array& k, const array& v) {
  for (const array* x : {&q, &k, &v}) {
    if (x->ndim() != 4) {
      invalid(
          kOp,
          "an input of ",
          x->ndim(),
          " dimensions. Expected queries, keys and values (B, N, T, D).");
    }
  }
  if (q.shape(0) != k.shape(0) || q.shape(0) != v.shape(0)) {
    invalid(
        kOp,
        "batches differ: ",
        q.shape(),
        ", ",
        k.shape(),
        " and ",
        v.shape(),
        ".");
  }
  if (q.shape(-1) != k.shape(-1)) {
    invalid(
        kOp,
        "features of queries and keys differ: ",
        q.shape(),
        " and ",
        k.shape(),
        ".");
  }
  if (k.shape(1) != v.shape(1) || k.shape(2) != v.shape(2)) {
    invalid(
        kOp,
        "keys and values differ in heads or tokens: ",
        k.shape(),
        " and ",
        v.shape(),
        ".");
  }
  if (k.shape(1) == 0 || q.shape(1) % k.shape(1) != 0) {
    invalid(
        kOp,
        "query heads are not a multiple of key heads: ",
        q.shape(1),
        " and ",
        k.shape(1),
        ".");
  }
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) {
    return false;
  }
  return std::equal(
      from.rbegin(), from.rend(), to.rbegin(), [](auto n, auto into) {
        return n == 1 || n == into;
      });
}

array checked_mask(array mask, const Shape& scores, Dtype dtype, Stream s) {
  if (!broadcasts_to(mask.shape(), scores)) {
    invalid(
        kOp,
        "a mask of shape ",
        mask.shape(),
        " does not broadcast to the scores ",
        scores,
        ".");
  }
  if (mask.dtype() != bool_) {
    if (promote_types(mask.dtype(), dtype) != dtype) {
      invalid(
          kOp,
          "a mask of type ",
          mask.dtype(),
          " does not promote to the result's type ",
          dtype,
          ".");
    }
    mask = astype(mask, dtype, s);
  }
  Shape shape = mask.shape();
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return reshape(mask, shape, s);
}

}  // namespace

array scaled_dot_product_attention(
    const array& queries,
    const array& keys,
    const array& values,
    const float scale,
    const std::string& mask_mode,
    std::optional<array> mask_arr,
    const std::optional<array>& sinks,
    bool /*force_fused*/,
    StreamOrDevice s) {
  if (detail::in_shapeless_tracing()) {
    std::vector<array> all = {queries, keys, values};
    for (const auto* more : {&std::as_const(mask_arr), &sinks}) {
      if (*more) {
        all.push_back(**more);
      }
    }
    bool has_mask = mask_arr.has_value();
    bool has_sinks = sinks.has_value();
    if (detail::lengths_open(all)) {
      return detail::postpone(
          kOp,
          all,
          to_stream(s),
          [=, s = to_stream(s)](const std::vector<array>& in) {
            std::optional<array> mask, sink;
            if (has_mask) {
              mask = in[3];
            }
            if (has_sinks) {
              sink = in.back();
            }
            return std::vector<array>{scaled_dot_product_attention(
                in[0], in[1], in[2], scale, mask_mode, mask, sink, false, s)};
          })[0];
    }
  }
  check_shapes(queries, keys, values);
  if (mask_mode != "" && mask_mode != "causal" && mask_mode != "array") {
    invalid(
        kOp,
        "unknown mask mode: ",
        mask_mode,
        ". Expected causal, array or nothing.");
  }
  if (mask_mode == "causal" && mask_arr) {
    invalid(kOp, "a mask array is given together with causal.");
  }
  if (mask_mode == "array" && !mask_arr) {
    invalid(kOp, "mask mode array without a mask array.");
  }
  Dtype dtype = result_type(queries, keys, values);
  if (!issubdtype(dtype, floating)) {
    invalid(
        kOp, "type not accepted: ", dtype, ". Expected real floating types.");
  }
  Stream stream = to_stream(s);
  AttentionParams params{
      scale, mask_mode == "causal", mask_arr.has_value(), sinks.has_value()};
  std::vector<array> inputs = {
      astype(queries, dtype, stream),
      astype(keys, dtype, stream),
      astype(values, dtype, stream)};
  if (mask_arr) {
    Shape scores{
        queries.shape(0), queries.shape(1), queries.shape(2), keys.shape(2)};
    inputs.push_back(checked_mask(*mask_arr, scores, dtype, stream));
  }
  if (sinks) {
    if (sinks->shape() != Shape{queries.shape(1)} ||
        promote_types(sinks->dtype(), dtype) != dtype) {
      invalid(
          kOp,
          "sinks of shape ",
          sinks->shape(),
          " and type ",
          sinks->dtype(),
          ". Expected (",
          queries.shape(1),
          ",) of a type that promotes to ",
          dtype,
          ".");
    }
    inputs.push_back(astype(*sinks, dtype, stream));
  }
  Shape shape = queries.shape();
  shape.back() = values.shape(-1);
  ArrayFn fallback = [params, stream](const std::vector<array>& in) {
    return std::vector<array>{composed(params, in, stream)};
  };
  if (dtype == float64) {
    return fallback(inputs)[0];
  }
  return make_node<ScaledDotProductAttention>(
      std::move(shape), dtype, inputs, stream, params, fallback);
}

}  // namespace mlx::core::fast
