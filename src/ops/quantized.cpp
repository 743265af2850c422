// Functions and rules of quantized matrices (mode "affine"). Rules:
// d(code * scale + bias) is code * d(scale) + d(bias), summed over the group;
// codes themselves have no derivative.
#include "ops/quantized.h"

#include <algorithm>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/views.h"
#include "types/error.h"

namespace mlx::core {

namespace {

template <typename T>
bool is_one_of(T x, std::initializer_list<T> list) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

QuantizeParams checked_params(
    const char* op,
    std::optional<int> group_size,
    std::optional<int> bits,
    const std::string& mode,
    const std::optional<array>& global_scale) {
  if (mode != "affine") {
    invalid(op, "unknown mode: ", mode, ". Expected affine.");
  }
  if (global_scale) {
    invalid(op, "mode affine takes no global scale.");
  }
  QuantizeParams params{group_size.value_or(64), bits.value_or(4)};
  if (!is_one_of(params.group_size, {32, 64, 128})) {
    invalid(
        op,
        "unsupported group size: ",
        params.group_size,
        ". Expected 32, 64 or 128.");
  }
  if (!is_one_of(params.bits, {2, 3, 4, 5, 6, 8})) {
    invalid(
        op,
        "unsupported number of bits: ",
        params.bits,
        ". Expected 2, 3, 4, 5, 6 or 8.");
  }
  return params;
}

Shape with_last(Shape shape, int64_t last) {
  shape.back() = safe_cast(last, "quantize");
  return shape;
}

/// Entries of a row that packed words hold.
int64_t unpacked_length(const array& w, int bits) {
  return int64_t{w.shape(-1)} * 32 / bits;
}

/// Codes, scales and biases of a quantized matrix, checked and in one type.
struct Packed {
  array w;
  array scales;
  array biases;
};

Packed checked_matrix(
    const char* op,
    const array& w,
    const array& scales,
    const std::optional<array>& biases,
    const QuantizeParams& params,
    Stream s) {
  if (!biases) {
    invalid(op, "no biases given. Mode affine needs them.");
  }
  if (w.dtype() != uint32) {
    invalid(op, "codes are of type ", w.dtype(), ". Expected uint32.");
  }
  if (w.ndim() < 2) {
    invalid(op, "codes have shape ", w.shape(), ". Expected two axes or more.");
  }
  Dtype dtype = result_type(scales, *biases);
  if (!issubdtype(dtype, floating)) {
    invalid(op, "scales and biases give ", dtype, ". Expected a real float.");
  }
  int64_t length = unpacked_length(w, params.bits);
  Shape expected = with_last(w.shape(), length / params.group_size);
  if (length % params.group_size != 0 || scales.shape() != expected ||
      biases->shape() != expected) {
    invalid(
        op,
        "scales and biases do not match the codes: ",
        scales.shape(),
        " and ",
        biases->shape(),
        " for codes of shape ",
        w.shape(),
        " with group size ",
        params.group_size,
        " and ",
        params.bits,
        " bits.");
  }
  return {w, astype(scales, dtype, s), astype(*biases, dtype, s)};
}

array dequantize_node(
    const array& w,
    const array& scales,
    const array& biases,
    const QuantizeParams& params,
    Stream s) {
  Shape shape = with_last(w.shape(), unpacked_length(w, params.bits));
  return make_node<Dequantize>(
      shape, scales.dtype(), {w, scales, biases}, s, params);
}

/// Entries in groups: (..., groups, group size).
array grouped(const array& x, int group_size, Stream s) {
  return unflatten(x, -1, {x.shape(-1) / group_size, group_size}, s);
}

array sum_groups(const array& x, int group_size, Stream s) {
  return sum(grouped(x, group_size, s), -1, false, s);
}

/// The codes as numbers.
array code_numbers(
    const array& w,
    const array& scales,
    const QuantizeParams& params,
    Stream s) {
  return dequantize_node(
      w, ones_like(scales, s), zeros_like(scales, s), params, s);
}

/// Numbers in double: float32 holds the codes exactly.
array dequantize_wide(const Packed& m, const QuantizeParams& params, Stream s) {
  array codes = code_numbers(m.w, astype(m.scales, float32, s), params, s);
  array numbers = grouped(astype(codes, float64, s), params.group_size, s);
  numbers =
      add(multiply(numbers, expand_dims(m.scales, -1, s), s),
          expand_dims(m.biases, -1, s),
          s);
  return flatten(numbers, -2, -1, s);
}

array dequantize_any(const Packed& m, const QuantizeParams& params, Stream s) {
  return m.scales.dtype() == float64
             ? dequantize_wide(m, params, s)
             : dequantize_node(m.w, m.scales, m.biases, params, s);
}

ShapeElem columns_of(const array& w, const QuantizedMatmulParams& params) {
  return params.transpose
             ? w.shape(-2)
             : static_cast<ShapeElem>(unpacked_length(w, params.bits));
}

array product_node(
    std::vector<array> inputs, const QuantizedMatmulParams& params, Stream s) {
  Shape shape = with_last(inputs[0].shape(), columns_of(inputs[1], params));
  Dtype dtype = inputs[0].dtype();
  return make_node<QuantizedMatmul>(
      std::move(shape), dtype, std::move(inputs), s, params);
}

/// Leading axes of x and a batch of matrices made equal.
void align(array& x, Packed& m, Stream s) {
  if (m.w.ndim() == 2) {
    return;
  }
  auto leading = [](const array& y) {
    return Shape(y.shape().begin(), y.shape().end() - 2);
  };
  Shape batch = broadcast_shapes(leading(x), leading(m.w));
  auto spread = [&](const array& y) {
    Shape shape = batch;
    shape.push_back(y.shape(-2));
    shape.push_back(y.shape(-1));
    return broadcast_to(y, shape, s);
  };
  x = spread(x);
  m = {spread(m.w), spread(m.scales), spread(m.biases)};
}

}  // namespace

std::vector<array> quantize(
    const array& w,
    std::optional<int> group_size,
    std::optional<int> bits,
    const std::string& mode,
    const std::optional<array>& global_scale,
    StreamOrDevice s) {
  MLX_POSTPONE_ALL(
      "quantize", quantize(in[0], group_size, bits, mode, global_scale, s), w);
  QuantizeParams params =
      checked_params("quantize", group_size, bits, mode, global_scale);
  if (!issubdtype(w.dtype(), floating)) {
    invalid("quantize", "w is of type ", w.dtype(), ". Expected a real float.");
  }
  if (w.ndim() < 2) {
    invalid("quantize", "w has shape ", w.shape(), ". Expected two axes.");
  }
  if (w.shape(-1) % params.group_size != 0) {
    invalid(
        "quantize",
        "the last axis does not divide into groups: shape ",
        w.shape(),
        ", group size ",
        params.group_size,
        ".");
  }
  auto op = std::make_shared<Quantize>(to_stream(s), params);
  return array::make_arrays(
      op->output_shapes({w}), {uint32, w.dtype(), w.dtype()}, op, {w});
}

array dequantize(
    const array& w,
    const array& scales,
    const std::optional<array>& biases,
    std::optional<int> group_size,
    std::optional<int> bits,
    const std::string& mode,
    const std::optional<array>& global_scale,
    std::optional<Dtype> dtype,
    StreamOrDevice s_) {
  Stream s = to_stream(s_);
  if (biases) {
    MLX_POSTPONE(
        "dequantize",
        dequantize(
            in[0],
            in[1],
            in[2],
            group_size,
            bits,
            mode,
            std::nullopt,
            dtype,
            s),
        w,
        scales,
        *biases);
  }
  QuantizeParams params =
      checked_params("dequantize", group_size, bits, mode, global_scale);
  Packed m = checked_matrix("dequantize", w, scales, biases, params, s);
  if (dtype && !issubdtype(*dtype, floating)) {
    invalid(
        "dequantize", "type ", *dtype, " asked for. Expected a real float.");
  }
  array out = dequantize_any(m, params, s);
  return dtype ? astype(out, *dtype, s) : out;
}

array quantized_matmul(
    const array& x,
    const array& w,
    const array& scales,
    const std::optional<array>& biases,
    bool transpose,
    std::optional<int> group_size,
    std::optional<int> bits,
    const std::string& mode,
    StreamOrDevice s_) {
  constexpr const char* kOp = "quantized_matmul";
  Stream s = to_stream(s_);
  if (biases) {
    MLX_POSTPONE(
        kOp,
        quantized_matmul(
            in[0], in[1], in[2], in[3], transpose, group_size, bits, mode, s),
        x,
        w,
        scales,
        *biases);
  }
  QuantizeParams matrix =
      checked_params(kOp, group_size, bits, mode, std::nullopt);
  Packed m = checked_matrix(kOp, w, scales, biases, matrix, s);
  Dtype dtype = result_type(x, m.scales);
  if (!issubdtype(dtype, floating)) {
    invalid(kOp, "x is of type ", x.dtype(), ". Expected a real type.");
  }
  int64_t depth = transpose ? unpacked_length(w, matrix.bits) : w.shape(-2);
  if (x.ndim() == 0 || x.shape(-1) != depth) {
    invalid(
        kOp,
        "inner dimensions differ: x of shape ",
        x.shape(),
        " and a quantized matrix of ",
        depth,
        transpose ? " columns." : " rows.",
        " The last of x must equal it.");
  }
  if (dtype == float64) {
    m.scales = astype(m.scales, float64, s);
    m.biases = astype(m.biases, float64, s);
    array full = dequantize_wide(m, matrix, s);
    return matmul(x, transpose ? swapaxes(full, -1, -2, s) : full, s);
  }
  array in = astype(x, dtype, s);
  if (x.ndim() == 1) {
    in = expand_dims(in, 0, s);
  }
  align(in, m, s);
  QuantizedMatmulParams params{matrix.group_size, matrix.bits, transpose};
  array out = product_node({in, m.w, m.scales, m.biases}, params, s);
  return x.ndim() == 1 ? squeeze(out, -2, s) : out;
}

std::vector<Shape> Quantize::output_shapes(const std::vector<array>& inputs) {
  const Shape& shape = inputs[0].shape();
  int64_t length = shape.back();
  Shape groups = with_last(shape, length / params().group_size);
  return {with_last(shape, length * params().bits / 32), groups, groups};
}

Batched Quantize::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  array w = batch_to_front(inputs[0], axes[0], stream());
  auto op = std::make_shared<Quantize>(stream(), params());
  return {
      array::make_arrays(
          op->output_shapes({w}), {uint32, w.dtype(), w.dtype()}, op, {w}),
      {0, 0, 0}};
}

std::vector<Shape> Dequantize::output_shapes(const std::vector<array>& inputs) {
  const array& w = inputs[0];
  return {with_last(w.shape(), unpacked_length(w, params().bits))};
}

std::vector<array> Dequantize::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  std::vector<array> all =
      filled_tangents(primals, tangents, argnums, stream());
  return {dequantize_node(primals[0], all[1], all[2], params(), stream())};
}

std::vector<array> Dequantize::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  Stream s = stream();
  std::vector<array> out;
  for (int i : argnums) {
    if (i == 0) {
      throw std::runtime_error(
          message("dequantize", "no derivative with respect to the codes."));
    }
    array change = cotangents[0];
    if (i == 1) {
      array codes = code_numbers(primals[0], primals[1], params(), s);
      change = multiply(change, codes, s);
    }
    out.push_back(sum_groups(change, params().group_size, s));
  }
  return out;
}

Batched Dequantize::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<array> all = all_batched(inputs, axes, stream());
  return {{dequantize_node(all[0], all[1], all[2], params(), stream())}, {0}};
}

std::vector<Shape> QuantizedMatmul::output_shapes(
    const std::vector<array>& inputs) {
  return {with_last(inputs[0].shape(), columns_of(inputs[1], params()))};
}

std::vector<array> QuantizedMatmul::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  Stream s = stream();
  std::vector<array> all = filled_tangents(primals, tangents, argnums, s);
  auto has = [&](int i) {
    return std::find(argnums.begin(), argnums.end(), i) != argnums.end();
  };
  std::optional<array> out;
  if (has(0)) {
    out =
        product_node({all[0], primals[1], primals[2], primals[3]}, params(), s);
  }
  if (has(2) || has(3)) {
    array term =
        product_node({primals[0], primals[1], all[2], all[3]}, params(), s);
    out = out ? add(*out, term, s) : term;
  }
  return {out ? *out : zeros(output_shapes(primals)[0], primals[0].dtype(), s)};
}

std::vector<array> QuantizedMatmul::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  Stream s = stream();
  const array& cotangent = cotangents[0];
  std::optional<array> of_matrix;
  std::vector<array> out;
  for (int i : argnums) {
    if (i == 0) {
      QuantizedMatmulParams other = params();
      other.transpose = !other.transpose;
      out.push_back(product_node(
          {cotangent, primals[1], primals[2], primals[3]}, other, s));
      continue;
    }
    if (i == 1) {
      throw std::runtime_error(message(
          "quantized_matmul", "no derivative with respect to the codes."));
    }
    if (!of_matrix) {
      array left = params().transpose ? cotangent : primals[0];
      array right = params().transpose ? primals[0] : cotangent;
      if (primals[1].ndim() == 2 && left.ndim() > 2) {
        left = flatten(left, 0, -2, s);
        right = flatten(right, 0, -2, s);
      }
      of_matrix = matmul(swapaxes(left, -1, -2, s), right, s);
    }
    array change = *of_matrix;
    if (i == 2) {
      QuantizeParams matrix{params().group_size, params().bits};
      change =
          multiply(change, code_numbers(primals[1], primals[2], matrix, s), s);
    }
    out.push_back(astype(
        sum_groups(change, params().group_size, s), primals[i].dtype(), s));
  }
  return out;
}

Batched QuantizedMatmul::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  Stream s = stream();
  bool shared = axes[1] < 0 && axes[2] < 0 && axes[3] < 0;
  if (shared && inputs[1].ndim() == 2) {
    array x = batch_to_front(inputs[0], axes[0], s);
    return {
        {product_node({x, inputs[1], inputs[2], inputs[3]}, params(), s)}, {0}};
  }
  // One matrix for each x: leading axes of the matrix must equal those of x.
  std::vector<array> all = all_batched(inputs, axes, s);
  Packed m{all[1], all[2], all[3]};
  for (array* part : {&m.w, &m.scales, &m.biases}) {
    while (part->ndim() < all[0].ndim()) {
      *part = expand_dims(*part, 1, s);
    }
  }
  align(all[0], m, s);
  return {{product_node({all[0], m.w, m.scales, m.biases}, params(), s)}, {0}};
}

}  // namespace mlx::core
