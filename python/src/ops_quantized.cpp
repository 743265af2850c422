// Quantized matrices.
#include "casters.h"
#include "mlx/ops.h"
#include "modules.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;
using MaybeArray = std::optional<mx::array>;
using MaybeInt = std::optional<int>;

void bind_quantize(nb::module_& m) {
  m.def(
      "quantize",
      [](const mx::array& w,
         MaybeInt group_size,
         MaybeInt bits,
         const std::string& mode,
         const MaybeArray& global_scale,
         const Stream& s) {
        return nb::tuple(
            nb::cast(mx::quantize(w, group_size, bits, mode, global_scale, s)));
      },
      nb::arg(),
      "group_size"_a = nb::none(),
      "bits"_a = nb::none(),
      "mode"_a = "affine",
      "global_scale"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def quantize(w: array, /, group_size: int | None = None, bits: "
              "int | None = None, mode: str = 'affine', global_scale: array | "
              "None = None, *, stream: StreamOrDevice = None) -> "
              "tuple[array, array, array]"),
      "Packs a matrix into codes of a few bits.\n\n"
      "Groups of entries along the last axis share a scale and a bias; an\n"
      "entry becomes the code q for which ``q * scale + bias`` is nearest.\n\n"
      "Args:\n"
      "    w (array): At least two axes, real floats; the last axis divides\n"
      "        into groups.\n"
      "    group_size (int, optional): 32, 64 or 128. Default: 64.\n"
      "    bits (int, optional): 2, 3, 4, 5, 6 or 8. Default: 4.\n"
      "    mode (str): ``affine``.\n"
      "    global_scale (array, optional): Not for ``affine``.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    tuple: Codes in words of uint32, lowest bits first, scales and\n"
      "    biases of the type of w.\n\n"
      "Raises:\n"
      "    ValueError: For other types, shapes, sizes and modes.\n\n"
      "Example:\n"
      "    >>> w, scales, biases = mx.quantize(mx.ones((2, 64)))\n"
      "    >>> w.shape, scales.shape\n"
      "    ((2, 8), (2, 1))");
  m.def(
      "dequantize",
      [](const mx::array& w,
         const mx::array& scales,
         const MaybeArray& biases,
         MaybeInt group_size,
         MaybeInt bits,
         const std::string& mode,
         const MaybeArray& global_scale,
         std::optional<mx::Dtype> dtype,
         const Stream& s) {
        return mx::dequantize(
            w, scales, biases, group_size, bits, mode, global_scale, dtype, s);
      },
      nb::arg(),
      "scales"_a,
      "biases"_a = nb::none(),
      "group_size"_a = nb::none(),
      "bits"_a = nb::none(),
      "mode"_a = "affine",
      "global_scale"_a = nb::none(),
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(
          "def dequantize(w: array, /, scales: array, biases: array | None "
          "= None, group_size: int | None = None, bits: int | None = None, "
          "mode: str = 'affine', global_scale: array | None = None, dtype: "
          "Dtype | None = None, *, stream: StreamOrDevice = None) -> array"),
      "The entries that packed codes stand for.\n\n"
      "Args:\n"
      "    w (array): Codes, as ``quantize`` gives them.\n"
      "    scales (array): One for each group.\n"
      "    biases (array, optional): One for each group; ``affine`` needs "
      "them.\n"
      "    group_size (int, optional): Default: 64.\n"
      "    bits (int, optional): Default: 4.\n"
      "    mode (str): ``affine``.\n"
      "    global_scale (array, optional): Not for ``affine``.\n"
      "    dtype (Dtype, optional): Default: the type of the scales.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: For scales and biases that do not match the codes.\n\n"
      "Example:\n"
      "    >>> w, scales, biases = mx.quantize(mx.ones((2, 64)))\n"
      "    >>> mx.dequantize(w, scales, biases)[0, :2]\n"
      "    array([1, 1], dtype=float32)");
}

void bind_product(nb::module_& m) {
  m.def(
      "quantized_matmul",
      [](const mx::array& x,
         const mx::array& w,
         const mx::array& scales,
         const MaybeArray& biases,
         bool transpose,
         MaybeInt group_size,
         MaybeInt bits,
         const std::string& mode,
         const Stream& s) {
        return mx::quantized_matmul(
            x, w, scales, biases, transpose, group_size, bits, mode, s);
      },
      nb::arg(),
      nb::arg(),
      "scales"_a,
      "biases"_a = nb::none(),
      "transpose"_a = true,
      "group_size"_a = nb::none(),
      "bits"_a = nb::none(),
      "mode"_a = "affine",
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(
          "def quantized_matmul(x: array, w: array, /, scales: array, "
          "biases: array | None = None, transpose: bool = True, group_size: "
          "int | None = None, bits: int | None = None, mode: str = "
          "'affine', *, stream: StreamOrDevice = None) -> array"),
      "The product with a quantized matrix, which is never unpacked as a "
      "whole.\n\n"
      "Args:\n"
      "    x (array): Shape (..., k).\n"
      "    w (array): Codes, as ``quantize`` gives them; leading axes "
      "broadcast.\n"
      "    scales (array): One for each group.\n"
      "    biases (array, optional): One for each group; ``affine`` needs "
      "them.\n"
      "    transpose (bool): Whether the matrix is (n, k), else (k, n).\n"
      "        Default: True.\n"
      "    group_size (int, optional): Default: 64.\n"
      "    bits (int, optional): Default: 4.\n"
      "    mode (str): ``affine``.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: Shape (..., n), the common type of x and scales.\n\n"
      "Raises:\n"
      "    ValueError: For shapes that do not match.\n\n"
      "Example:\n"
      "    >>> w, scales, biases = mx.quantize(mx.ones((2, 64)))\n"
      "    >>> mx.quantized_matmul(mx.ones((1, 64)), w, scales, biases)\n"
      "    array([[64, 64]], dtype=float32)");
}

void bind_fp8(nb::module_& m) {
  m.def(
      "from_fp8",
      [](const mx::array& x, std::optional<mx::Dtype> dtype, const Stream& s) {
        return mx::from_fp8(x, dtype.value_or(mx::bfloat16), s);
      },
      nb::arg(),
      "dtype"_a.none() = mx::bfloat16,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def from_fp8(x: array, /, dtype: Dtype = bfloat16, *, stream: "
              "StreamOrDevice = None) -> array"),
      "Numbers of 8 bits (e4m3) as a floating type.\n\n"
      "Args:\n"
      "    x (array): uint8, any shape.\n"
      "    dtype (Dtype): A real floating type. Default: bfloat16.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: For other types.\n\n"
      "Example:\n"
      "    >>> mx.from_fp8(mx.array([56, 126], mx.uint8), mx.float32)\n"
      "    array([1, 448], dtype=float32)");
  m.def(
      "to_fp8",
      [](const mx::array& x, const Stream& s) { return mx::to_fp8(x, s); },
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def to_fp8(x: array, /, *, stream: StreamOrDevice = None) -> "
              "array"),
      "The nearest numbers of 8 bits (e4m3): 3 mantissa bits, at most 448.\n\n"
      "Args:\n"
      "    x (array): A real floating type; what is beyond 448, and NaN, "
      "becomes\n"
      "        448.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: uint8, the shape of x.\n\n"
      "Raises:\n"
      "    ValueError: For other types.\n\n"
      "Example:\n"
      "    >>> mx.to_fp8(mx.array([1.0, 448.0]))\n"
      "    array([56, 126], dtype=uint8)");
}

}  // namespace

void init_ops_quantized(nb::module_& m) {
  bind_fp8(m);
  bind_quantize(m);
  bind_product(m);
}

}  // namespace mlx::python
