// Methods of the class array that mirror functions of the module, with this
// array as the first operand: elementwise and shape functions.
#include <string>

#include "array.h"
#include "casters.h"
#include "convert.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;

struct UnaryMethod {
  const char* name;
  mx::array (*function)(const mx::array&, Stream);
  const char* of;
};

constexpr UnaryMethod kUnary[] = {
    {"abs", mx::abs, "abs"},
    {"square", mx::square, "square"},
    {"sqrt", mx::sqrt, "sqrt"},
    {"rsqrt", mx::rsqrt, "rsqrt"},
    {"reciprocal", mx::reciprocal, "reciprocal"},
    {"exp", mx::exp, "exp"},
    {"log", mx::log, "log"},
    {"log2", mx::log2, "log2"},
    {"log10", mx::log10, "log10"},
    {"log1p", mx::log1p, "log1p"},
    {"sin", mx::sin, "sin"},
    {"cos", mx::cos, "cos"},
    {"conj", mx::conjugate, "conjugate"},
};

std::string mirror_doc(const char* function) {
  return std::string("See `mlx.core.") + function + "`.";
}

/// Integers given one by one or as one sequence; false for none at all.
bool read_arguments(const nb::args& args, Lengths& out, const char* op) {
  bool one_by_one = args.size() != 1 ||
                    detail::read_integer(args[0], out.values.emplace_back());
  if (!one_by_one) {
    if (args[0].is_none()) {
      return false;
    }
    if (!detail::read_integers(args[0], out.values)) {
      throw nb::type_error(
          mx::message(
              op,
              "arguments not understood. Expected ints, or one "
              "sequence of ints.")
              .c_str());
    }
    return true;
  }
  out.values.resize(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (!detail::read_integer(args[i], out.values[i])) {
      throw nb::type_error(
          mx::message(op, "argument ", i, " is no int. Expected ints.")
              .c_str());
    }
  }
  return args.size() > 0;
}

void bind_unary(ArrayClass& c) {
  for (const UnaryMethod& method : kUnary) {
    std::string sig = std::string("def ") + method.name +
                      "(self, *, stream: StreamOrDevice = None) -> array";
    c.def(
        method.name,
        [function = method.function](const mx::array& a, const Stream& s) {
          return function(a, s);
        },
        nb::kw_only(),
        "stream"_a = nb::none(),
        nb::sig(sig.c_str()),
        mirror_doc(method.of).c_str());
  }
  c.def(
      "round",
      [](const mx::array& a, int decimals, const Stream& s) {
        return mx::round(a, decimals, s);
      },
      "decimals"_a = 0,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def round(self, decimals: int = 0, *, stream: StreamOrDevice = "
              "None) -> array"),
      mirror_doc("round").c_str());
}

void bind_types(ArrayClass& c) {
  c.def(
       "astype",
       [](const mx::array& a, mx::Dtype dtype, const Stream& s) {
         return mx::astype(a, dtype, s);
       },
       "dtype"_a,
       "stream"_a = nb::none(),
       nb::sig("def astype(self, dtype: Dtype, stream: StreamOrDevice = None) "
               "-> array"),
       mirror_doc("astype").c_str())
      .def(
          "view",
          [](const mx::array& a, mx::Dtype dtype, const Stream& s) {
            return mx::view(a, dtype, s);
          },
          "dtype"_a,
          nb::kw_only(),
          "stream"_a = nb::none(),
          nb::sig("def view(self, dtype: Dtype, *, stream: StreamOrDevice = "
                  "None) -> array"),
          mirror_doc("view").c_str());
}

void bind_reshapes(ArrayClass& c) {
  c.def(
       "reshape",
       [](const mx::array& a, nb::args args, const Stream& s) {
         Lengths lengths;
         read_arguments(args, lengths, "reshape");
         return mx::reshape(a, lengths.shape("reshape"), s);
       },
       "shape"_a,
       "stream"_a = nb::none(),
       nb::sig("def reshape(self, *shape: int | Sequence[int], stream: "
               "StreamOrDevice = None) -> array"),
       "As `mlx.core.reshape`; the shape is given as ints or as one sequence.")
      .def(
          "flatten",
          [](const mx::array& a, int start, int end, const Stream& s) {
            return mx::flatten(a, start, end, s);
          },
          "start_axis"_a = 0,
          "end_axis"_a = -1,
          nb::kw_only(),
          "stream"_a = nb::none(),
          nb::sig("def flatten(self, start_axis: int = 0, end_axis: int = -1, "
                  "*, stream: StreamOrDevice = None) -> array"),
          mirror_doc("flatten").c_str())
      .def(
          "squeeze",
          [](const mx::array& a, const Axes& axis, const Stream& s) {
            return axis.none() ? mx::squeeze(a, s)
                               : mx::squeeze(a, axis.values, s);
          },
          "axis"_a = nb::none(),
          nb::kw_only(),
          "stream"_a = nb::none(),
          nb::sig("def squeeze(self, axis: None | int | Sequence[int] = None, "
                  "*, stream: StreamOrDevice = None) -> array"),
          mirror_doc("squeeze").c_str())
      .def(
          "split",
          split_array,
          "indices_or_sections"_a,
          "axis"_a = 0,
          nb::kw_only(),
          "stream"_a = nb::none(),
          nb::sig("def split(self, indices_or_sections: int | Sequence[int], "
                  "axis: int = 0, *, stream: StreamOrDevice = None) -> "
                  "list[array]"),
          mirror_doc("split").c_str());
}

void bind_diagonals(ArrayClass& c) {
  c.def(
       "diagonal",
       [](const mx::array& a,
          int offset,
          int axis1,
          int axis2,
          const Stream& s) { return mx::diagonal(a, offset, axis1, axis2, s); },
       "offset"_a = 0,
       "axis1"_a = 0,
       "axis2"_a = 1,
       "stream"_a = nb::none(),
       nb::sig("def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int "
               "= 1, stream: StreamOrDevice = None) -> array"),
       mirror_doc("diagonal").c_str())
      .def(
          "diag",
          [](const mx::array& a, int k, const Stream& s) {
            return mx::diag(a, k, s);
          },
          "k"_a = 0,
          nb::kw_only(),
          "stream"_a = nb::none(),
          nb::sig("def diag(self, k: int = 0, *, stream: StreamOrDevice = "
                  "None) -> array"),
          mirror_doc("diag").c_str());
}

void bind_axes(ArrayClass& c) {
  c.def(
       "transpose",
       [](const mx::array& a, nb::args args, const Stream& s) {
         Lengths axes;
         if (!read_arguments(args, axes, "transpose")) {
           return mx::transpose(a, s);
         }
         return mx::transpose(
             a, std::vector<int>(axes.values.begin(), axes.values.end()), s);
       },
       "axes"_a,
       "stream"_a = nb::none(),
       nb::sig("def transpose(self, *axes: int | Sequence[int], stream: "
               "StreamOrDevice = None) -> array"),
       "As `mlx.core.transpose`; the axes are given as ints or as one\n"
       "sequence, none reverses all.")
      .def(
          "moveaxis",
          [](const mx::array& a, int source, int destination, const Stream& s) {
            return mx::moveaxis(a, source, destination, s);
          },
          "source"_a,
          "destination"_a,
          nb::kw_only(),
          "stream"_a = nb::none(),
          nb::sig("def moveaxis(self, source: int, destination: int, *, "
                  "stream: StreamOrDevice = None) -> array"),
          mirror_doc("moveaxis").c_str())
      .def(
          "swapaxes",
          [](const mx::array& a, int axis1, int axis2, const Stream& s) {
            return mx::swapaxes(a, axis1, axis2, s);
          },
          "axis1"_a,
          "axis2"_a,
          nb::kw_only(),
          "stream"_a = nb::none(),
          nb::sig("def swapaxes(self, axis1: int, axis2: int, *, stream: "
                  "StreamOrDevice = None) -> array"),
          mirror_doc("swapaxes").c_str());
}

}  // namespace

void bind_array_methods(ArrayClass& c) {
  bind_unary(c);
  bind_types(c);
  bind_reshapes(c);
  bind_axes(c);
  bind_diagonals(c);
}

}  // namespace mlx::python
