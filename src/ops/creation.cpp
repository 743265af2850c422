// Ranges, constants, identities and triangles.
#include "mlx/ops/creation.h"

#include <cmath>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/join.h"
#include "types/error.h"

namespace mlx::core {

array arange(
    double start, double stop, double step, Dtype dtype, StreamOrDevice s) {
  if (dtype == bool_) {
    invalid("arange", "bool is not a type of ranges. Expected a number type.");
  }
  if (!std::isfinite(start) || !std::isfinite(stop) || std::isnan(step)) {
    invalid(
        "arange",
        "start, stop and step must be finite: ",
        start,
        ", ",
        stop,
        ", ",
        step,
        ".");
  }
  double count = std::ceil((stop - start) / step);
  if (std::isinf(step)) {
    count = (step > 0) == (stop > start) && stop != start ? 1 : 0;
  }
  if (std::isnan(count) || count > std::numeric_limits<int>::max()) {
    invalid(
        "arange",
        "too many elements from ",
        start,
        " to ",
        stop,
        " by ",
        step,
        ". The step must not be 0.");
  }
  int n = count > 0 ? static_cast<int>(count) : 0;
  return make_node<Arange>(
      Shape{n}, dtype, {}, to_stream(s), ArangeParams{start, step, n});
}

array arange(double start, double stop, double step, StreamOrDevice s) {
  return arange(start, stop, step, float32, s);
}
array arange(double start, double stop, Dtype dtype, StreamOrDevice s) {
  return arange(start, stop, 1.0, dtype, s);
}
array arange(double start, double stop, StreamOrDevice s) {
  return arange(start, stop, 1.0, float32, s);
}
array arange(double stop, Dtype dtype, StreamOrDevice s) {
  return arange(0.0, stop, 1.0, dtype, s);
}
array arange(double stop, StreamOrDevice s) {
  return arange(0.0, stop, 1.0, float32, s);
}
array arange(int start, int stop, int step, StreamOrDevice s) {
  return arange(
      static_cast<double>(start),
      static_cast<double>(stop),
      static_cast<double>(step),
      int32,
      s);
}
array arange(int start, int stop, StreamOrDevice s) {
  return arange(start, stop, 1, s);
}
array arange(int stop, StreamOrDevice s) {
  return arange(0, stop, 1, s);
}

array linspace(
    double start,
    double stop,
    int num,
    bool endpoint,
    Dtype dtype,
    StreamOrDevice s) {
  if (num < 0) {
    invalid("linspace", "negative count: ", num, ".");
  }
  if (num == 1) {
    return astype(array({static_cast<float>(start)}), dtype, s);
  }
  // start * (1 - t) + stop * t reaches both ends exactly.
  Dtype compute = dtype == float64 ? float64 : float32;
  int steps = endpoint ? num - 1 : num;
  array t = divide(
      arange(0.0, num, 1.0, compute, s),
      array(static_cast<double>(steps), compute),
      s);
  array left =
      multiply(subtract(array(1.0, compute), t, s), array(start, compute), s);
  array right = multiply(t, array(stop, compute), s);
  return astype(add(left, right, s), dtype, s);
}

array full(Shape shape, array vals, Dtype dtype, StreamOrDevice s) {
  MLX_POSTPONE("full", full(shape, in[0], dtype, s), vals);
  for (ShapeElem n : shape) {
    if (n < 0) {
      invalid("full", "negative dimension: ", shape, ".");
    }
  }
  if (broadcast_shapes(vals.shape(), shape) != shape) {
    invalid("full", "cannot broadcast ", vals.shape(), " to ", shape, ".");
  }
  return make_node<Full>(
      shape,
      dtype,
      {astype(std::move(vals), dtype, s)},
      to_stream(s),
      FullParams{shape});
}

array full(Shape shape, array vals, StreamOrDevice s) {
  Dtype dtype = vals.dtype();
  return full(std::move(shape), std::move(vals), dtype, s);
}

array full_like(const array& a, array vals, Dtype dtype, StreamOrDevice s) {
  MLX_POSTPONE("full_like", full_like(in[0], in[1], dtype, s), a, vals);
  return full(a.shape(), std::move(vals), dtype, s);
}
array full_like(const array& a, array vals, StreamOrDevice s) {
  MLX_POSTPONE("full_like", full_like(in[0], in[1], s), a, vals);
  return full(a.shape(), std::move(vals), a.dtype(), s);
}

array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s) {
  return full(shape, array(0, dtype), dtype, s);
}
array zeros_like(const array& a, StreamOrDevice s) {
  MLX_POSTPONE("zeros_like", zeros_like(in[0], s), a);
  return zeros(a.shape(), a.dtype(), s);
}
array zeros_like(const array& a, Dtype dtype, StreamOrDevice s) {
  MLX_POSTPONE("zeros_like", zeros_like(in[0], dtype, s), a);
  return zeros(a.shape(), dtype, s);
}
array ones(const Shape& shape, Dtype dtype, StreamOrDevice s) {
  return full(shape, array(1, dtype), dtype, s);
}
array ones_like(const array& a, StreamOrDevice s) {
  MLX_POSTPONE("ones_like", ones_like(in[0], s), a);
  return ones(a.shape(), a.dtype(), s);
}
array ones_like(const array& a, Dtype dtype, StreamOrDevice s) {
  MLX_POSTPONE("ones_like", ones_like(in[0], dtype, s), a);
  return ones(a.shape(), dtype, s);
}

namespace {

array row_index(int n, StreamOrDevice s) {
  return expand_dims(arange(n, s), 1, s);
}

// Whether column - row <= k.
array lower_mask(int n, int m, int k, StreamOrDevice s) {
  return less_equal(subtract(arange(m, s), row_index(n, s), s), array(k), s);
}

void check_matrix_size(const char* op, int n, int m) {
  if (n < 0 || m < 0) {
    invalid(op, "negative size: ", n, " rows, ", m, " columns.");
  }
}

array triangle(
    const char* op, const array& x, int k, bool lower, StreamOrDevice s) {
  if (x.ndim() < 2) {
    invalid(op, "an array of ", x.ndim(), " dimensions. Expected at least 2.");
  }
  array mask = lower_mask(x.shape(-2), x.shape(-1), lower ? k : k - 1, s);
  array zero(0, x.dtype());
  return lower ? where(mask, x, zero, s) : where(mask, zero, x, s);
}

}  // namespace

array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s) {
  check_matrix_size("eye", n, m);
  array diagonal =
      equal(subtract(arange(m, s), row_index(n, s), s), array(k), s);
  return astype(diagonal, dtype, s);
}

array identity(int n, Dtype dtype, StreamOrDevice s) {
  return eye(n, n, 0, dtype, s);
}

array tri(int n, int m, int k, Dtype type, StreamOrDevice s) {
  check_matrix_size("tri", n, m);
  return astype(lower_mask(n, m, k, s), type, s);
}

array tril(array x, int k, StreamOrDevice s) {
  MLX_POSTPONE("tril", tril(in[0], k, s), x);
  return triangle("tril", x, k, true, s);
}

array triu(array x, int k, StreamOrDevice s) {
  MLX_POSTPONE("triu", triu(in[0], k, s), x);
  return triangle("triu", x, k, false, s);
}

}  // namespace mlx::core
