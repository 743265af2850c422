// Diagonals, and windows of samples.
#include <string>

#include "casters.h"
#include "convert.h"
#include "mlx/ops/diagonal.h"
#include "mlx/ops/windows.h"
#include "modules.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;

mx::array trace(
    const mx::array& a,
    int offset,
    int axis1,
    int axis2,
    std::optional<mx::Dtype> dtype,
    const Stream& s) {
  return dtype ? mx::trace(a, offset, axis1, axis2, *dtype, s)
               : mx::trace(a, offset, axis1, axis2, s);
}

void bind_diagonals(nb::module_& m) {
  m.def(
      "diagonal",
      [](const mx::array& a,
         int offset,
         int axis1,
         int axis2,
         const Stream& s) { return mx::diagonal(a, offset, axis1, axis2, s); },
      "a"_a,
      "offset"_a = 0,
      "axis1"_a = 0,
      "axis2"_a = 1,
      "stream"_a = nb::none(),
      nb::sig("def diagonal(a: array, offset: int = 0, axis1: int = 0, axis2: "
              "int = 1, stream: StreamOrDevice = None) -> array"),
      "The diagonals of two axes.\n\n"
      "Args:\n"
      "    a (array): At least two axes.\n"
      "    offset (int): The diagonal, positive above the main one. Default: "
      "0.\n"
      "    axis1 (int): The axis of rows. Default: 0.\n"
      "    axis2 (int): The axis of columns. Default: 1.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: Without the two axes; the diagonals are its last axis.\n\n"
      "Raises:\n"
      "    AxisError: For axes out of range.\n"
      "    ValueError: For less than two axes and one named twice.\n\n"
      "Example:\n"
      "    >>> mx.diagonal(mx.array([[1, 2], [3, 4]]))\n"
      "    array([1, 4], dtype=int32)");
  m.def(
      "diag",
      [](const mx::array& a, int k, const Stream& s) {
        return mx::diag(a, k, s);
      },
      nb::arg(),
      "k"_a = 0,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def diag(a: array, /, k: int = 0, *, stream: StreamOrDevice = "
              "None) -> array"),
      "A matrix with a diagonal, or the diagonal of a matrix.\n\n"
      "Args:\n"
      "    a (array): 1-d (the diagonal) or 2-d (the matrix).\n"
      "    k (int): The diagonal, positive above the main one. Default: 0.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: For other numbers of axes.\n\n"
      "Example:\n"
      "    >>> mx.diag(mx.array([1, 2]))\n"
      "    array([[1, 0],\n"
      "           [0, 2]], dtype=int32)");
  m.def(
      "trace",
      trace,
      nb::arg(),
      "offset"_a = 0,
      "axis1"_a = 0,
      "axis2"_a = 1,
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def trace(a: array, /, offset: int = 0, axis1: int = 0, axis2: "
              "int = 1, dtype: Dtype | None = None, *, stream: StreamOrDevice "
              "= None) -> array"),
      "The sums along the diagonals of two axes.\n\n"
      "Args:\n"
      "    a (array): At least two axes.\n"
      "    offset (int): As for ``diagonal``.\n"
      "    axis1 (int): As for ``diagonal``.\n"
      "    axis2 (int): As for ``diagonal``.\n"
      "    dtype (Dtype, optional): Default: as of ``sum``.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: As ``diagonal``.\n\n"
      "Example:\n"
      "    >>> mx.trace(mx.array([[1, 2], [3, 4]]))\n"
      "    array(5, dtype=int32)");
}

struct WindowRow {
  const char* name;
  mx::array (*function)(int, Stream);
  const char* summary;
  const char* example;
};

constexpr WindowRow kWindows[] = {
    {"bartlett",
     mx::bartlett,
     "The triangular window ``1 - |2 n / (M - 1) - 1|``.",
     "    >>> mx.bartlett(5)\n"
     "    array([0, 0.5, 1, 0.5, 0], dtype=float32)"},
    {"hanning",
     mx::hanning,
     "The Hann window ``0.5 - 0.5 cos(2 pi n / (M - 1))``.",
     "    >>> mx.hanning(3)\n"
     "    array([0, 1, 0], dtype=float32)"},
    {"hamming",
     mx::hamming,
     "The Hamming window ``0.54 - 0.46 cos(2 pi n / (M - 1))``.",
     "    >>> mx.hamming(3)\n"
     "    array([0.08, 1, 0.08], dtype=float32)"},
    {"blackman",
     mx::blackman,
     "The Blackman window\n"
     "``0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1))``.",
     "    >>> mx.blackman(3)[1]\n"
     "    array(1, dtype=float32)"},
};

void bind_windows(nb::module_& m) {
  for (const WindowRow& row : kWindows) {
    std::string sig = std::string("def ") + row.name +
                      "(M: int, *, stream: StreamOrDevice = None) -> array";
    std::string doc = std::string(row.summary) +
                      "\n\n"
                      "Args:\n"
                      "    M (int): The number of samples.\n"
                      "    stream (Stream or Device, optional): Where to "
                      "compute.\n\n"
                      "Returns:\n"
                      "    array: Shape (M,), float32; a single sample is 1, "
                      "of less than one\n"
                      "        there are none.\n\n"
                      "Example:\n" +
                      row.example;
    m.def(
        row.name,
        [function = row.function](int M, const Stream& s) {
          return function(M, s);
        },
        "M"_a,
        nb::kw_only(),
        "stream"_a = nb::none(),
        nb::sig(sig.c_str()),
        doc.c_str());
  }
}

}  // namespace

void init_ops_diagonal(nb::module_& m) {
  bind_diagonals(m);
  bind_windows(m);
}

}  // namespace mlx::python
