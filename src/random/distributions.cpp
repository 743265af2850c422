// Distributions made of uniform bits; each rule is that of MLX 0.32, so that
// a key gives the same numbers.
#include <cmath>
#include <limits>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "mlx/random.h"
#include "types/error.h"

namespace mlx::core::random {

namespace {

// Drawn while tracing: the state goes on from there.
array drawn_key(const std::optional<array>& key) {
  return key ? *key : KeySequence::default_().next();
}

void check_real_float(const char* op, Dtype dtype) {
  if (dtype == float64) {
    throw std::runtime_error(message(
        op,
        "float64 is not supported. Expected float16, bfloat16 or float32."));
  }
  if (dtype != float16 && dtype != bfloat16 && dtype != float32) {
    invalid(
        op,
        "type not accepted: ",
        dtype,
        ". Expected float16, bfloat16 or float32.");
  }
}

void check_shape(const char* op, const Shape& from, const Shape& shape) {
  if (broadcast_shapes(from, shape) != shape) {
    invalid(
        op, "parameters of shape ", from, " do not broadcast to ", shape, ".");
  }
}

// The largest number below 1.
float below_one(Dtype dtype) {
  return dtype == float16    ? 0x1.ffcp-1f
         : dtype == bfloat16 ? 0x1.fep-1f
                             : 0x1.fffffep-1f;
}

// A normal number a element, before scale: erfinv of a uniform of (-1, 1).
array erfinv_of_uniform(
    const Shape& shape, const std::optional<array>& key, StreamOrDevice s) {
  array low(std::nextafterf(-1.0f, 0.0f));
  return erfinv(uniform(low, array(1.0f), shape, float32, key, s), s);
}

array scaled_and_shifted(
    array x,
    const std::optional<array>& loc,
    const std::optional<array>& scale,
    StreamOrDevice s) {
  if (scale) {
    x = multiply(x, astype(*scale, x.dtype(), s), s);
  }
  return loc ? add(x, astype(*loc, x.dtype(), s), s) : x;
}

}  // namespace

array uniform(
    const array& low,
    const array& high,
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (detail::lengths_open(low, high)) {
    array k = drawn_key(key);
    MLX_POSTPONE(
        "uniform", uniform(in[0], in[1], shape, dtype, in[2], s), low, high, k);
  }
  check_real_float("uniform", dtype);
  check_shape("uniform", broadcast_shapes(low.shape(), high.shape()), shape);
  array lo = astype(low, dtype, s);
  array range = subtract(astype(high, dtype, s), lo, s);
  array u =
      divide(astype(bits(shape, 4, key, s), float32, s), array(0x1p32f), s);
  u = astype(minimum(u, array(below_one(dtype)), s), dtype, s);
  return add(multiply(u, range, s), lo, s);
}

array uniform(
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& key,
    StreamOrDevice s) {
  return uniform(array(0.0f), array(1.0f), shape, dtype, key, s);
}

array normal(
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& loc,
    const std::optional<array>& scale,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (dtype == complex64) {
    Shape pairs = shape;
    pairs.push_back(2);
    array parts = erfinv_of_uniform(pairs, key, s);
    array z = squeeze(view(parts, complex64, s), -1, s);
    return scaled_and_shifted(z, loc, scale, s);
  }
  check_real_float("normal", dtype);
  array x = astype(erfinv_of_uniform(shape, key, s), dtype, s);
  array root2(std::sqrt(2.0f), dtype);
  array factor = scale ? multiply(root2, astype(*scale, dtype, s), s) : root2;
  return scaled_and_shifted(x, loc, factor, s);
}

array randint(
    const array& low,
    const array& high,
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (dtype == bool_) {
    return astype(randint(low, high, shape, int32, key, s), bool_, s);
  }
  if (!issubdtype(dtype, integer)) {
    invalid(
        "randint",
        "type not accepted: ",
        dtype,
        ". Expected bool or an integer type.");
  }
  array u = uniform(low, high, shape, float32, key, s);
  array drawn = astype(floor(u, s), dtype, s);
  // Rounding of low + u * (high - low) may reach high. An empty range gives
  // low.
  array top = subtract(astype(high, dtype, s), array(1, dtype), s);
  return maximum(minimum(drawn, top, s), astype(low, dtype, s), s);
}

array bernoulli(
    const array& p,
    const Shape& shape,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (detail::lengths_open(p)) {
    array k = drawn_key(key);
    MLX_POSTPONE("bernoulli", bernoulli(in[0], shape, in[1], s), p, k);
  }
  if (!issubdtype(p.dtype(), floating)) {
    invalid(
        "bernoulli",
        "the probability is not of a floating type: ",
        p.dtype(),
        ".");
  }
  check_shape("bernoulli", p.shape(), shape);
  float most = std::nextafterf(
      static_cast<float>(0xffffffffu), std::numeric_limits<float>::infinity());
  array threshold = multiply(p, array(most), s);
  return less(bits(shape, 4, key, s), threshold, s);
}

array bernoulli(
    const array& p, const std::optional<array>& key, StreamOrDevice s) {
  if (detail::lengths_open(p)) {
    array k = drawn_key(key);
    MLX_POSTPONE("bernoulli", bernoulli(in[0], in[1], s), p, k);
  }
  return bernoulli(p, p.shape(), key, s);
}

array bernoulli(const std::optional<array>& key, StreamOrDevice s) {
  return bernoulli(array(0.5f), key, s);
}

array truncated_normal(
    const array& lower,
    const array& upper,
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& key,
    StreamOrDevice s) {
  check_real_float("truncated_normal", dtype);
  array root2(std::sqrt(2.0f), dtype);
  array lo = astype(lower, dtype, s);
  array hi = astype(upper, dtype, s);
  array a = erf(divide(lo, root2, s), s);
  array b = erf(divide(hi, root2, s), s);
  array u = uniform(a, b, shape, dtype, key, s);
  return maximum(minimum(multiply(root2, erfinv(u, s), s), hi, s), lo, s);
}

array truncated_normal(
    const array& lower,
    const array& upper,
    Dtype dtype,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (detail::lengths_open(lower, upper)) {
    array k = drawn_key(key);
    MLX_POSTPONE(
        "truncated_normal",
        truncated_normal(in[0], in[1], dtype, in[2], s),
        lower,
        upper,
        k);
  }
  Shape shape = broadcast_shapes(lower.shape(), upper.shape());
  return truncated_normal(lower, upper, shape, dtype, key, s);
}

array gumbel(
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& key,
    StreamOrDevice s) {
  array u = uniform(shape, dtype, key, s);
  return negative(log(negative(log(u, s), s), s), s);
}

array laplace(
    const Shape& shape,
    Dtype dtype,
    const float loc,
    const float scale,
    const std::optional<array>& key,
    StreamOrDevice s) {
  check_real_float("laplace", dtype);
  array low(std::nextafterf(-1.0f, 0.0f));
  array u = uniform(low, array(1.0f), shape, float32, key, s);
  array x = multiply(sign(u, s), log1p(negative(abs(u, s), s), s), s);
  return scaled_and_shifted(
      astype(x, dtype, s), array(loc, dtype), array(scale, dtype), s);
}

// ---- categorical

namespace {

constexpr const char* kCategorical = "categorical";

array by_gumbel(
    const array& logits,
    int axis,
    Shape noise_shape,
    const std::optional<array>& key,
    StreamOrDevice s) {
  array noise = gumbel(noise_shape, float32, key, s);
  return argmax(add(logits, noise, s), axis, false, s);
}

// One distribution, several samples: search the running sum of weights.
array by_inverse_cdf(
    const array& logits,
    const Shape& shape,
    const std::optional<array>& key,
    StreamOrDevice s) {
  array x = astype(flatten(logits, s), float32, s);
  array top = max(x, true, s);
  array weights = where(
      isinf(top, s),
      astype(equal(x, top, s), float32, s),
      exp(subtract(x, top, s), s),
      s);
  array below = cumsum(weights, 0, false, false, std::nullopt, s);
  array u = multiply(uniform(shape, float32, key, s), sum(weights, s), s);
  return subtract(searchsorted(below, u, "right", s), array(1, uint32), s);
}

bool is_single(const array& logits, int axis) {
  return static_cast<ShapeElem>(logits.size()) == logits.shape(axis);
}

}  // namespace

array categorical(
    const array& logits,
    int axis,
    const Shape& shape,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (detail::lengths_open(logits)) {
    array k = drawn_key(key);
    MLX_POSTPONE(
        kCategorical, categorical(in[0], axis, shape, in[1], s), logits, k);
  }
  int ndim = static_cast<int>(logits.ndim());
  axis = checked_axis("categorical", axis, ndim);
  Shape reduced = logits.shape();
  reduced.erase(reduced.begin() + axis);
  check_shape("categorical", reduced, shape);
  if (is_single(logits, axis) && !shape.empty()) {
    return by_inverse_cdf(logits, shape, key, s);
  }
  // The axis counts from the end of the samples' shape.
  int from_end = axis - ndim;
  Shape noise = shape;
  noise.insert(noise.end() + from_end + 1, logits.shape(axis));
  return by_gumbel(logits, from_end, noise, key, s);
}

array categorical(
    const array& logits_,
    int axis,
    int num_samples,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (detail::lengths_open(logits_)) {
    array k = drawn_key(key);
    MLX_POSTPONE(
        kCategorical,
        categorical(in[0], axis, num_samples, in[1], s),
        logits_,
        k);
  }
  int ndim = static_cast<int>(logits_.ndim());
  axis = checked_axis("categorical", axis, ndim);
  if (num_samples < 0) {
    invalid("categorical", "negative number of samples: ", num_samples, ".");
  }
  Shape samples = logits_.shape();
  samples.erase(samples.begin() + axis);
  samples.push_back(num_samples);
  if (is_single(logits_, axis)) {
    return by_inverse_cdf(logits_, samples, key, s);
  }
  Shape noise = logits_.shape();
  noise.push_back(num_samples);
  return by_gumbel(expand_dims(logits_, -1, s), axis, noise, key, s);
}

array categorical(
    const array& logits,
    int axis,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (detail::lengths_open(logits)) {
    array k = drawn_key(key);
    MLX_POSTPONE(kCategorical, categorical(in[0], axis, in[1], s), logits, k);
  }
  axis = checked_axis("categorical", axis, static_cast<int>(logits.ndim()));
  Shape reduced = logits.shape();
  reduced.erase(reduced.begin() + axis);
  return categorical(logits, axis, reduced, key, s);
}

array permutation(
    const array& x,
    int axis,
    const std::optional<array>& key,
    StreamOrDevice s) {
  if (detail::lengths_open(x)) {
    array k = drawn_key(key);
    MLX_POSTPONE("permutation", permutation(in[0], axis, in[1], s), x, k);
  }
  axis = checked_axis("permutation", axis, static_cast<int>(x.ndim()));
  return take(x, permutation(x.shape(axis), key, s), axis, s);
}

array permutation(int x, const std::optional<array>& key, StreamOrDevice s) {
  return argsort(bits({x}, 4, key, s), s);
}

}  // namespace mlx::core::random
