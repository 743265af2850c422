// Running reductions along an axis.
#include <string>

#include "array.h"
#include "casters.h"
#include "mlx/ops/scan.h"
#include "modules.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;
using Dtyped = std::optional<mx::Dtype>;

/// A scan over the flattened array and one along an axis.
struct ScanRow {
  const char* name;
  mx::array (*flat)(const mx::array&, bool, bool, Stream);
  mx::array (*along)(const mx::array&, int, bool, bool, Stream);
  const char* summary;
  const char* example;
};

constexpr ScanRow kScans[] = {
    {"cummax",
     mx::cummax,
     mx::cummax,
     "The largest element so far along an axis",
     "array([1, 1, 2], dtype=float32)"},
    {"cummin",
     mx::cummin,
     mx::cummin,
     "The smallest element so far along an axis",
     "array([1, 0.5, 0.5], dtype=float32)"},
    {"logcumsumexp",
     mx::logcumsumexp,
     mx::logcumsumexp,
     "log(cumsum(exp(a))) along an axis without overflow; integers give "
     "float32",
     "array([1, 1.47408, 2.46437], dtype=float32)"},
};

/// The same for scans that take a dtype.
struct SumRow {
  const char* name;
  mx::array (*flat)(const mx::array&, bool, bool, Dtyped, Stream);
  mx::array (*along)(const mx::array&, int, bool, bool, Dtyped, Stream);
  const char* summary;
  const char* example;
};

constexpr SumRow kSums[] = {
    {"cumsum",
     mx::cumsum,
     mx::cumsum,
     "The sum so far along an axis; bool adds up in int32",
     "array([1, 1.5, 3.5], dtype=float32)"},
    {"cumprod",
     mx::cumprod,
     mx::cumprod,
     "The product so far along an axis",
     "array([1, 0.5, 1], dtype=float32)"},
};

std::string doc_of(
    const char* name, const char* summary, bool dtype, const char* example) {
  return std::string(summary) +
         ".\n\n"
         "Args:\n"
         "    a (array): Any shape.\n"
         "    axis (int, optional): Default: the flattened array.\n"
         "    reverse (bool): Whether to run from the end. Default: False.\n"
         "    inclusive (bool): Whether an element's own value counts.\n"
         "        Default: True.\n" +
         (dtype ? "    dtype (Dtype, optional): Default: the type of a.\n"
                : "") +
         "    stream (Stream or Device, optional): Where to compute.\n\n"
         "Raises:\n"
         "    ValueError: For an axis out of range.\n\n"
         "Example:\n"
         "    >>> mx." +
         name + "(mx.array([1, 0.5, 2]))\n    " + example;
}

std::string signature(const char* name, bool method, bool dtype) {
  return std::string("def ") + name + (method ? "(self" : "(a: array, /") +
         ", axis: int | None = None, *, reverse: bool = False, inclusive: bool "
         "= True, " +
         (dtype ? "dtype: Dtype | None = None, " : "") +
         "stream: StreamOrDevice = None) -> array";
}

template <typename Row>
auto plain(const Row& row) {
  return [flat = row.flat, along = row.along](
             const mx::array& a,
             std::optional<int> axis,
             bool reverse,
             bool inclusive,
             const Stream& s) {
    return axis ? along(a, *axis, reverse, inclusive, s)
                : flat(a, reverse, inclusive, s);
  };
}

auto typed(const SumRow& row) {
  return [flat = row.flat, along = row.along](
             const mx::array& a,
             std::optional<int> axis,
             bool reverse,
             bool inclusive,
             Dtyped dtype,
             const Stream& s) {
    return axis ? along(a, *axis, reverse, inclusive, dtype, s)
                : flat(a, reverse, inclusive, dtype, s);
  };
}

}  // namespace

void bind_array_scans(ArrayClass& c) {
  for (const ScanRow& row : kScans) {
    c.def(
        row.name,
        plain(row),
        "axis"_a = nb::none(),
        nb::kw_only(),
        "reverse"_a = false,
        "inclusive"_a = true,
        "stream"_a = nb::none(),
        nb::sig(signature(row.name, true, false).c_str()),
        (std::string("See `mlx.core.") + row.name + "`.").c_str());
  }
  for (const SumRow& row : kSums) {
    c.def(
        row.name,
        typed(row),
        "axis"_a = nb::none(),
        nb::kw_only(),
        "reverse"_a = false,
        "inclusive"_a = true,
        "dtype"_a = nb::none(),
        "stream"_a = nb::none(),
        nb::sig(signature(row.name, true, true).c_str()),
        (std::string("See `mlx.core.") + row.name + "`.").c_str());
  }
}

namespace {

void bind_diff(nb::module_& m) {
  m.def(
      "diff",
      [](const mx::array& a, int n, int axis, const mx::StreamOrDevice& s) {
        return mx::diff(a, n, axis, s);
      },
      nb::arg(),
      "n"_a = 1,
      "axis"_a = -1,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def diff(a: array, /, n: int = 1, axis: int = -1, *, stream: "
              "StreamOrDevice = None) -> array"),
      "The differences of neighbours along an axis.\n\n"
      "Args:\n"
      "    a (array): At least one axis.\n"
      "    n (int): How often to take differences. Default: 1.\n"
      "    axis (int): Default: the last one.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The type of a, shorter by n along the axis; of bool, "
      "whether\n"
      "        neighbours differ.\n\n"
      "Raises:\n"
      "    ValueError: For a negative n and an axis out of range.\n\n"
      "Example:\n"
      "    >>> mx.diff(mx.array([1, 2, 4, 7]))\n"
      "    array([1, 2, 3], dtype=int32)");
}

}  // namespace

void init_ops_scan(nb::module_& m) {
  bind_diff(m);
  for (const ScanRow& row : kScans) {
    m.def(
        row.name,
        plain(row),
        nb::arg(),
        "axis"_a = nb::none(),
        nb::kw_only(),
        "reverse"_a = false,
        "inclusive"_a = true,
        "stream"_a = nb::none(),
        nb::sig(signature(row.name, false, false).c_str()),
        doc_of(row.name, row.summary, false, row.example).c_str());
  }
  for (const SumRow& row : kSums) {
    m.def(
        row.name,
        typed(row),
        nb::arg(),
        "axis"_a = nb::none(),
        nb::kw_only(),
        "reverse"_a = false,
        "inclusive"_a = true,
        "dtype"_a = nb::none(),
        "stream"_a = nb::none(),
        nb::sig(signature(row.name, false, true).c_str()),
        doc_of(row.name, row.summary, true, row.example).c_str());
  }
  m.attr("cumulative_sum") = m.attr("cumsum");
  m.attr("cumulative_prod") = m.attr("cumprod");
}

}  // namespace mlx::python
