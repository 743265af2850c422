// Function and rules of writing rows where a mask is true.
#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/scatter.h"
#include "types/error.h"

namespace mlx::core {

namespace {

// `mask`, or numbers of its shape, with axes of length 1 for the rest of a.
array over_rows(const array& mask, const array& a, Stream s) {
  Shape shape = mask.shape();
  shape.resize(a.ndim(), 1);
  return reshape(mask, shape, s);
}

array masked_scatter_node(
    const array& a, const array& mask, const array& rows, Stream s) {
  return make_node<MaskedScatter>(
      a.shape(), a.dtype(), {a, mask, rows}, s, NoParams{});
}

// For every entry of the mask (along its last axis) how many are true before
// it, itself included, less one: the row it would take.
array row_numbers(const array& flat_mask, Stream s) {
  array counted = cumsum(astype(flat_mask, int32, s), -1, false, true, s);
  return subtract(counted, array(1, int32), s);
}

}  // namespace

array masked_scatter(
    const array& a, const array& mask, const array& src, StreamOrDevice s) {
  MLX_POSTPONE(
      "masked_scatter", masked_scatter(in[0], in[1], in[2], s), a, mask, src);
  const char* op = "masked_scatter";
  if (mask.dtype() != bool_) {
    invalid(op, "bad type of mask: ", mask.dtype(), ". Expected bool.");
  }
  if (mask.ndim() > a.ndim() ||
      !std::equal(
          mask.shape().begin(), mask.shape().end(), a.shape().begin())) {
    invalid(
        op,
        "a mask of shape ",
        mask.shape(),
        " does not match an array of shape ",
        a.shape(),
        ". Expected the array's leading axes.");
  }
  Stream stream = to_stream(s);
  array values = astype(src, a.dtype(), stream);
  size_t row_ndim = a.ndim() - mask.ndim();
  Shape row(a.shape().begin() + mask.ndim(), a.shape().end());
  if (values.ndim() == row_ndim + 1 && values.shape(0) == 1) {
    values = squeeze(values, 0, stream);
  }
  if (values.ndim() <= row_ndim) {
    // One row for all.
    values = broadcast_to(values, row, stream);
    return where(over_rows(mask, a, stream), values, a, stream);
  }
  if (values.ndim() > row_ndim + 1) {
    invalid(
        op,
        "values of shape ",
        src.shape(),
        " for rows of ",
        row_ndim,
        " axes. Expected rows along at most one more axis.");
  }
  row.insert(row.begin(), values.shape(0));
  return masked_scatter_node(
      a, mask, broadcast_to(values, row, stream), stream);
}

// ---- MaskedScatter

std::vector<Shape> MaskedScatter::output_shapes(
    const std::vector<array>& inputs) {
  return {inputs[0].shape()};
}

std::vector<array> MaskedScatter::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  check_not_indices("masked_scatter", argnums, 1, 1);
  std::vector<array> t = filled_tangents(primals, tangents, argnums, stream());
  return {masked_scatter_node(t[0], primals[1], t[2], stream())};
}

std::vector<array> MaskedScatter::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  check_not_indices("masked_scatter", argnums, 1, 1);
  Stream s = stream();
  const array& mask = primals[1];
  const array& rows = primals[2];
  const array& c = cotangents[0];
  array zero(0, c.dtype());
  array over = over_rows(mask, primals[0], s);
  std::vector<array> grads;
  for (int argnum : argnums) {
    if (argnum == 0) {
      grads.push_back(where(over, zero, c, s));
      continue;
    }
    // Row k takes the cotangent of the k-th true entry; what the others have
    // goes to a row past the end that is dropped.
    Shape shape = rows.shape();
    shape[0] = safe_cast(mask.size(), "masked_scatter");
    array flat = reshape(mask, {shape[0]}, s);
    array at = where(flat, row_numbers(flat, s), array(rows.shape(0)), s);
    shape.insert(shape.begin() + 1, 1);
    Shape padded = rows.shape();
    ++padded[0];
    array put =
        scatter(zeros(padded, c.dtype(), s), at, reshape(c, shape, s), 0, s);
    grads.push_back(slice(put, Shape(padded.size(), 0), rows.shape(), s));
  }
  return grads;
}

// Each entry of the batch counts its own mask: read the rows by number.
Batched MaskedScatter::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  std::vector<array> in = all_batched(inputs, axes, s);
  const array& a = in[0];
  const array& rows = in[2];
  ShapeElem batch = a.shape(0);
  array flat = reshape(
      in[1],
      {batch, static_cast<ShapeElem>(batch ? in[1].size() / batch : 0)},
      s);
  Shape wanted(rows.ndim(), 1);
  wanted[0] = batch;
  wanted[1] = flat.shape(1);
  array values =
      take_along_axis(rows, reshape(row_numbers(flat, s), wanted, s), 1, s);
  return {
      {where(over_rows(in[1], a, s), reshape(values, a.shape(), s), a, s)},
      {0}};
}

}  // namespace mlx::core
