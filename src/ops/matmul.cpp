// Matrix products: shapes, types and rules, and the functions made of them.
#include "ops/matmul.h"

#include <algorithm>
#include <numeric>
#include <typeinfo>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

Shape leading_axes(const array& x) {
  return Shape(x.shape().begin(), x.shape().end() - 2);
}

Shape product_shape(const array& a, const array& b) {
  Shape shape = a.shape();
  shape.back() = b.shape(-1);
  return shape;
}

array with_leading_axes(const array& x, Shape leading, Stream s) {
  leading.push_back(x.shape(-2));
  leading.push_back(x.shape(-1));
  return broadcast_to(x, leading, s);
}

array transposed(const array& x, Stream s) {
  return swapaxes(x, -1, -2, s);
}

/// The adjoint of x: transposed, and conjugated where that matters.
array adjoint(const array& x, Stream s) {
  array t = transposed(x, s);
  return x.dtype() == complex64 ? conjugate(t, s) : t;
}

/// Whether b is a view of a matrix that lies the other way, as weights do.
bool is_transpose(const array& b) {
  if (!b.has_primitive() || typeid(b.primitive()) != typeid(Transpose)) {
    return false;
  }
  const auto& axes = static_cast<const Transpose&>(b.primitive()).params().axes;
  size_t n = axes.size();
  for (size_t i = 0; i + 2 < n; ++i) {
    if (axes[i] != static_cast<int>(i)) {
      return false;
    }
  }
  return axes[n - 2] > axes[n - 1];
}

array scaled(const array& x, float factor, Stream s) {
  return factor == 1 ? x : multiply(x, array(factor, x.dtype()), s);
}

/// Operands as matrices of one type; what to undo in the product.
struct Operands {
  array a;
  array b;
  bool row_added = false;
  bool col_added = false;

  array finish(array product, Stream s) const {
    if (col_added) {
      product = squeeze(product, -1, s);
    }
    if (row_added) {
      product = squeeze(product, col_added ? -1 : -2, s);
    }
    return product;
  }
};

Operands checked_operands(
    const char* op, const array& a, const array& b, Dtype dtype, Stream s) {
  if (a.ndim() == 0 || b.ndim() == 0) {
    invalid(
        op,
        "an operand has no axes: ",
        a.shape(),
        " and ",
        b.shape(),
        ". Expected at least one axis each.");
  }
  if (!issubdtype(dtype, inexact)) {
    invalid(
        op,
        "the type is not inexact: ",
        a.dtype(),
        " and ",
        b.dtype(),
        " give ",
        dtype,
        ". Expected a floating or complex type.");
  }
  Operands ops{astype(a, dtype, s), astype(b, dtype, s)};
  if (ops.a.ndim() == 1) {
    ops.row_added = true;
    ops.a = expand_dims(ops.a, 0, s);
  }
  if (ops.b.ndim() == 1) {
    ops.col_added = true;
    ops.b = expand_dims(ops.b, 1, s);
  }
  if (ops.a.shape(-1) != ops.b.shape(-2)) {
    invalid(
        op,
        "inner dimensions differ: ",
        a.shape(),
        " and ",
        b.shape(),
        ". The last of a must equal the ",
        ops.col_added ? "only one" : "second to last",
        " of b.");
  }
  return ops;
}

/// Makes the leading axes equal. A batch of a times one matrix b needs none:
/// all rows of a are one matrix, whose product has a cheap gradient too.
/// Returns the product's shape.
Shape align(Operands& ops, Stream s) {
  if (ops.b.ndim() == 2) {
    Shape shape = product_shape(ops.a, ops.b);
    if (ops.a.ndim() > 2) {
      ops.a = flatten(ops.a, 0, static_cast<int>(ops.a.ndim()) - 2, s);
    }
    return shape;
  }
  Shape leading = broadcast_shapes(leading_axes(ops.a), leading_axes(ops.b));
  ops.a = with_leading_axes(ops.a, leading, s);
  ops.b = with_leading_axes(ops.b, leading, s);
  return product_shape(ops.a, ops.b);
}

array product(const array& a, const array& b, Stream s) {
  return make_node<Matmul>(product_shape(a, b), a.dtype(), {a, b}, s);
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) {
    return false;
  }
  return std::equal(
      from.rbegin(), from.rend(), to.rbegin(), [](ShapeElem f, ShapeElem t) {
        return f == t || f == 1;
      });
}

/// c in the shape of the product of the (perhaps flattened) operands.
array broadcast_addend(
    const array& c, const Shape& shape, const Shape& flat, Stream s) {
  bool one_row = std::all_of(
      c.shape().begin(),
      c.shape().end() - std::min<std::ptrdiff_t>(1, std::ptrdiff_t(c.ndim())),
      [](ShapeElem n) { return n == 1; });
  if (one_row && c.ndim() <= shape.size()) {
    array row = c.ndim() == 0 ? c : reshape(c, {c.shape(-1)}, s);
    return broadcast_to(row, flat, s);
  }
  return reshape(broadcast_to(c, shape, s), flat, s);
}

}  // namespace

array matmul(const array& a, const array& b, StreamOrDevice s_) {
  Stream s = to_stream(s_);
  MLX_POSTPONE("matmul", matmul(in[0], in[1], s), a, b);
  Operands ops = checked_operands("matmul", a, b, result_type(a, b), s);
  Shape shape = align(ops, s);
  return ops.finish(reshape(product(ops.a, ops.b, s), shape, s), s);
}

array addmm(
    array c,
    array a,
    array b,
    const float& alpha,
    const float& beta,
    StreamOrDevice s_) {
  Stream s = to_stream(s_);
  MLX_POSTPONE("addmm", addmm(in[0], in[1], in[2], alpha, beta, s), c, a, b);
  Dtype dtype = result_type(a, b, c);
  Operands ops = checked_operands("addmm", a, b, dtype, s);
  Shape shape = align(ops, s);
  Shape visible = shape;
  if (ops.col_added) {
    visible.pop_back();
  }
  if (ops.row_added) {
    visible.erase(visible.end() - (ops.col_added ? 1 : 2));
  }
  if (!broadcasts_to(c.shape(), visible)) {
    invalid(
        "addmm",
        "c does not broadcast to the product: ",
        c.shape(),
        " and ",
        visible,
        ".");
  }
  c = astype(c, dtype, s);
  if (ops.col_added && c.ndim() > 0) {
    c = expand_dims(c, -1, s);
  }
  if (ops.row_added && c.ndim() > 1) {
    c = expand_dims(c, -2, s);
  }
  Shape flat = product_shape(ops.a, ops.b);
  c = broadcast_addend(c, shape, flat, s);
  array out = make_node<AddMM>(
      flat, dtype, {ops.a, ops.b, c}, s, AddMMParams{alpha, beta});
  return ops.finish(reshape(out, shape, s), s);
}

namespace {

/// What the second factor gets. Where that is a transpose it is one too: the
/// matrix below then gets a gradient that lies row by row, as itself.
array second_gradient(
    const array& a, const array& b, const array& cotangent, Stream s) {
  return is_transpose(b) ? adjoint(product(adjoint(cotangent, s), a, s), s)
                         : product(adjoint(a, s), cotangent, s);
}

}  // namespace

std::vector<Shape> Matmul::output_shapes(const std::vector<array>& inputs) {
  return {product_shape(inputs[0], inputs[1])};
}

std::vector<array> Matmul::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  Stream s = stream();
  std::vector<array> terms;
  for (size_t i = 0; i < argnums.size(); ++i) {
    terms.push_back(
        argnums[i] == 0 ? product(tangents[i], primals[1], s)
                        : product(primals[0], tangents[i], s));
  }
  return {terms.size() == 1 ? terms[0] : add(terms[0], terms[1], s)};
}

std::vector<array> Matmul::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  Stream s = stream();
  std::vector<array> out;
  for (int i : argnums) {
    out.push_back(
        i == 0 ? product(cotangents[0], adjoint(primals[1], s), s)
               : second_gradient(primals[0], primals[1], cotangents[0], s));
  }
  return out;
}

Batched Matmul::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<array> all = all_batched(inputs, axes, stream());
  return {{product(all[0], all[1], stream())}, {0}};
}

std::vector<Shape> AddMM::output_shapes(const std::vector<array>& inputs) {
  return {product_shape(inputs[0], inputs[1])};
}

std::vector<array> AddMM::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  Stream s = stream();
  array sum =
      zeros(product_shape(primals[0], primals[1]), primals[0].dtype(), s);
  for (size_t i = 0; i < argnums.size(); ++i) {
    if (argnums[i] == 2) {
      sum = add(sum, scaled(tangents[i], params().beta, s), s);
      continue;
    }
    array term = argnums[i] == 0 ? product(tangents[i], primals[1], s)
                                 : product(primals[0], tangents[i], s);
    sum = add(sum, scaled(term, params().alpha, s), s);
  }
  return {sum};
}

std::vector<array> AddMM::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  Stream s = stream();
  const array& cotangent = cotangents[0];
  std::vector<array> out;
  for (int i : argnums) {
    if (i == 2) {
      out.push_back(scaled(cotangent, params().beta, s));
      continue;
    }
    array term = i == 0 ? product(cotangent, adjoint(primals[1], s), s)
                        : second_gradient(primals[0], primals[1], cotangent, s);
    out.push_back(scaled(term, params().alpha, s));
  }
  return out;
}

Batched AddMM::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<array> all = all_batched(inputs, axes, stream());
  Shape shape = product_shape(all[0], all[1]);
  Dtype dtype = all[0].dtype();
  return {
      {make_node<AddMM>(shape, dtype, std::move(all), stream(), params())},
      {0}};
}

}  // namespace mlx::core
