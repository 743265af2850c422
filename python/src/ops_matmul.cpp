// Matrix products and contractions.
#include <nanobind/stl/variant.h>

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "casters.h"
#include "mlx/ops.h"
#include "modules.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;

void bind_products(nb::module_& m) {
  m.def(
      "matmul",
      [](const mx::array& a, const mx::array& b, const Stream& s) {
        return mx::matmul(a, b, s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def matmul(a: array, b: array, /, *, stream: StreamOrDevice = "
              "None) -> array"),
      "The matrix product.\n\n"
      "Sums are float32 for 16-bit types. A 1-d operand counts as a row (a)\n"
      "or a column (b), which the result lacks again.\n\n"
      "Args:\n"
      "    a (array): Shape (..., m, k) or (k,), an inexact type.\n"
      "    b (array): Shape (..., k, n) or (k,); leading axes broadcast.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: Shape (..., m, n).\n\n"
      "Raises:\n"
      "    ValueError: For 0-d operands, integers, and inner dimensions that\n"
      "        differ.\n\n"
      "Example:\n"
      "    >>> mx.matmul(mx.ones((2, 3)), mx.ones((3,)))\n"
      "    array([3, 3], dtype=float32)");
  m.def(
      "addmm",
      [](const mx::array& c,
         const mx::array& a,
         const mx::array& b,
         float alpha,
         float beta,
         const Stream& s) { return mx::addmm(c, a, b, alpha, beta, s); },
      nb::arg(),
      nb::arg(),
      nb::arg(),
      "alpha"_a = 1.0f,
      "beta"_a = 1.0f,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def addmm(c: array, a: array, b: array, /, alpha: float = 1.0, "
              "beta: float = 1.0, *, stream: StreamOrDevice = None) -> array"),
      "``alpha * (a @ b) + beta * c`` in one step.\n\n"
      "Args:\n"
      "    c (array): Broadcasts to the product's shape.\n"
      "    a (array): As in ``matmul``.\n"
      "    b (array): As in ``matmul``.\n"
      "    alpha (float): Factor of the product. Default: 1.\n"
      "    beta (float): Factor of c. Default: 1; with 0, c is not read.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: As ``matmul``, and when c does not broadcast.\n\n"
      "Example:\n"
      "    >>> mx.addmm(mx.array([1.0, 2.0]), mx.ones((1, 3)), "
      "mx.ones((3, 2)))\n"
      "    array([[4, 5]], dtype=float32)");
}

mx::array tensordot(
    const mx::array& a,
    const mx::array& b,
    const std::variant<int, std::vector<std::vector<int>>>& axes,
    const Stream& s) {
  if (auto* count = std::get_if<int>(&axes)) {
    return mx::tensordot(a, b, *count, s);
  }
  const auto& lists = std::get<std::vector<std::vector<int>>>(axes);
  if (lists.size() != 2) {
    throw std::invalid_argument(
        "[tensordot] " + std::to_string(lists.size()) +
        " lists of axes given. Expected one for each array.");
  }
  return mx::tensordot(a, b, lists[0], lists[1], s);
}

void bind_contractions(nb::module_& m) {
  m.def(
      "tensordot",
      tensordot,
      nb::arg(),
      nb::arg(),
      "axes"_a = 2,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def tensordot(a: array, b: array, /, axes: int | "
              "Sequence[Sequence[int]] = 2, *, stream: StreamOrDevice = None) "
              "-> array"),
      "Sums of products over axes of two arrays.\n\n"
      "Args:\n"
      "    a (array): An inexact type.\n"
      "    b (array): An inexact type.\n"
      "    axes (int or Sequence[Sequence[int]]): The last n axes of a with\n"
      "        the first n of b, or the axes of each. Default: 2.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The other axes of a, then those of b.\n\n"
      "Raises:\n"
      "    ValueError: For lengths that differ and axes out of range.\n\n"
      "Example:\n"
      "    >>> mx.tensordot(mx.ones((2, 3)), mx.ones((3, 4)), axes=1).shape\n"
      "    (2, 4)");
  m.def(
      "inner",
      [](const mx::array& a, const mx::array& b, const Stream& s) {
        return mx::inner(a, b, s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def inner(a: array, b: array, /, *, stream: StreamOrDevice = "
              "None) -> array"),
      "Sums of products over the last axes.\n\n"
      "Args:\n"
      "    a (array): Shape (..., k); with a 0-d operand, plain products.\n"
      "    b (array): Shape (..., k).\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: For last dimensions that differ.\n\n"
      "Example:\n"
      "    >>> mx.inner(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))\n"
      "    array(11, dtype=float32)");
  m.def(
      "outer",
      [](const mx::array& a, const mx::array& b, const Stream& s) {
        return mx::outer(a, b, s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def outer(a: array, b: array, /, *, stream: StreamOrDevice = "
              "None) -> array"),
      "All products of the elements of two flattened arrays.\n\n"
      "Args:\n"
      "    a (array): Any shape; its elements are the rows.\n"
      "    b (array): Any shape; its elements are the columns.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.outer(mx.array([1, 2]), mx.array([3, 4]))\n"
      "    array([[3, 4],\n"
      "           [6, 8]], dtype=int32)");
}

void bind_more_products(nb::module_& m) {
  m.def(
      "kron",
      [](const mx::array& a, const mx::array& b, const Stream& s) {
        return mx::kron(a, b, s);
      },
      "a"_a,
      "b"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def kron(a: array, b: array, *, stream: StreamOrDevice = None) "
              "-> array"),
      "The Kronecker product: each element of a by all of b.\n\n"
      "Args:\n"
      "    a (array): Any shape but an empty one; missing axes count as 1.\n"
      "    b (array): The same.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The lengths of a and b multiplied, axis by axis.\n\n"
      "Raises:\n"
      "    ValueError: For empty arrays.\n\n"
      "Example:\n"
      "    >>> mx.kron(mx.array([1, 2]), mx.array([3, 4]))\n"
      "    array([3, 4, 6, 8], dtype=int32)");
  m.def(
      "vecdot",
      [](const mx::array& a, const mx::array& b, int axis, const Stream& s) {
        return mx::vecdot(a, b, axis, s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "axis"_a = -1,
      "stream"_a = nb::none(),
      nb::sig("def vecdot(a: array, b: array, /, *, axis: int = -1, stream: "
              "StreamOrDevice = None) -> array"),
      "Sums of ``conj(a) * b`` along an axis.\n\n"
      "Args:\n"
      "    a (array): At least one axis.\n"
      "    b (array): The same; its other axes broadcast with those of a.\n"
      "    axis (int): An axis of equal length in both. Default: -1.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: Without the axis, in the type that ``sum`` has.\n\n"
      "Raises:\n"
      "    ValueError: For an axis out of range and lengths that differ.\n\n"
      "Example:\n"
      "    >>> mx.vecdot(mx.array([1, 2]), mx.array([3, 4]))\n"
      "    array(11, dtype=int32)");
  m.def(
      "hadamard_transform",
      [](const mx::array& a, std::optional<float> scale, const Stream& s) {
        return mx::hadamard_transform(a, scale, s);
      },
      nb::arg(),
      "scale"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def hadamard_transform(a: array, /, scale: float | None = None, "
              "*, stream: StreamOrDevice = None) -> array"),
      "The Walsh-Hadamard transform of the last axis.\n\n"
      "Args:\n"
      "    a (array): Shape (..., n), n = m 2^k with m one of 1, 12, 20, 28.\n"
      "    scale (float, optional): A factor. Default: 1 / sqrt(n), with "
      "which\n"
      "        lengths of vectors stay.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The shape of a; float32 for bool and integers.\n\n"
      "Raises:\n"
      "    ValueError: For other n, empty arrays and complex numbers.\n\n"
      "Example:\n"
      "    >>> mx.hadamard_transform(mx.array([1.0, 2.0]), scale=1.0)\n"
      "    array([3, -1], dtype=float32)");
}

}  // namespace

void init_ops_matmul(nb::module_& m) {
  bind_products(m);
  bind_contractions(m);
  bind_more_products(m);
}

}  // namespace mlx::python
