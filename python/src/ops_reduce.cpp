// Functions that combine the elements along axes, and softmax.
#include <string>

#include "array.h"
#include "casters.h"
#include "mlx/ops/reduce.h"
#include "mlx/ops/softmax.h"
#include "modules.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;
using Reduce =
    mx::array (*)(const mx::array&, const std::vector<int>&, bool, Stream);
using Spread =
    mx::array (*)(const mx::array&, const std::vector<int>&, bool, int, Stream);
using Arg = mx::array (*)(const mx::array&, int, bool, Stream);
using ArgAll = mx::array (*)(const mx::array&, bool, Stream);

struct ReduceRow {
  const char* name;
  Reduce function;
  const char* summary;
  const char* example;
  bool method = true;
};

constexpr ReduceRow kReductions[] = {
    {"all",
     mx::all,
     "Whether all elements along axes are not zero; bool",
     "array(False, dtype=bool)"},
    {"any",
     mx::any,
     "Whether any element along axes is not zero; bool",
     "array(True, dtype=bool)"},
    {"sum",
     mx::sum,
     "The sum along axes; bool and small integers add up in 32 bits",
     "array(3, dtype=int32)"},
    {"prod",
     mx::prod,
     "The product along axes; bool and small integers multiply in 32 bits",
     "array(0, dtype=int32)"},
    {"max",
     mx::max,
     "The largest element along axes; NaN if there is one",
     "array(2, dtype=int32)"},
    {"min",
     mx::min,
     "The smallest element along axes; NaN if there is one",
     "array(0, dtype=int32)"},
    {"mean",
     mx::mean,
     "The arithmetic mean along axes; integers give float32",
     "array(1, dtype=float32)"},
    {"logsumexp",
     mx::logsumexp,
     "log(sum(exp(a))) along axes without overflow; integers give float32",
     "array(2.40761, dtype=float32)"},
    {"median",
     mx::median,
     "The median along axes, the mean of the middle two for even counts",
     "array(1, dtype=float32)",
     false},
    {"count_nonzero",
     mx::count_nonzero,
     "The number of elements along axes that are not zero; int32",
     "array(2, dtype=int32)",
     false},
};

struct SpreadRow {
  const char* name;
  Spread function;
  const char* summary;
  const char* example;
};

constexpr SpreadRow kSpreads[] = {
    {"var",
     mx::var,
     "The variance along axes",
     "array(0.666667, dtype=float32)"},
    {"std",
     mx::std,
     "The standard deviation along axes, the root of `var`",
     "array(0.816497, dtype=float32)"},
};

struct ArgRow {
  const char* name;
  Arg function;
  ArgAll over_all;
  const char* summary;
  const char* example;
};

constexpr ArgRow kArgs[] = {
    {"argmin",
     mx::argmin,
     mx::argmin,
     "The index (uint32) of the first smallest element",
     "array(0, dtype=uint32)"},
    {"argmax",
     mx::argmax,
     mx::argmax,
     "The index (uint32) of the first largest element",
     "array(2, dtype=uint32)"},
};

std::string doc_of(
    const char* name,
    const char* summary,
    const char* axis_type,
    const char* more_args,
    const char* example) {
  return std::string(summary) +
         ".\n\n"
         "Args:\n"
         "    a (array): Any shape.\n"
         "    axis (" +
         axis_type +
         "): Default: all elements.\n"
         "    keepdims (bool): Whether reduced axes stay with length 1.\n"
         "        Default: False.\n" +
         more_args +
         "    stream (Stream or Device, optional): Where to compute.\n\n"
         "Raises:\n"
         "    IndexError: For an axis out of range.\n"
         "    ValueError: For an axis named twice.\n\n"
         "Example:\n"
         "    >>> mx." +
         name + "(mx.array([0, 1, 2]))\n    " + example;
}

/// "(a: array, /, rest" for a function, "(self, rest" for a method.
std::string signature(const char* name, bool method, const char* rest) {
  return std::string("def ") + name + (method ? "(self, " : "(a: array, /, ") +
         rest + "stream: StreamOrDevice = None) -> array";
}

constexpr const char* kAxes =
    "axis: None | int | Sequence[int] = None, keepdims: bool = False, *, ";

/// Binds `f` to a module as a function, or to the class array as a method.
template <typename Scope, typename F, typename... Extra>
void define(
    Scope& scope,
    const char* name,
    const F& f,
    const char* rest,
    const std::string& doc,
    const Extra&... extra) {
  if constexpr (std::is_same_v<Scope, nb::module_>) {
    scope.def(
        name,
        f,
        nb::arg(),
        extra...,
        nb::kw_only(),
        "stream"_a = nb::none(),
        nb::sig(signature(name, false, rest).c_str()),
        doc.c_str());
  } else {
    std::string see = std::string("See `mlx.core.") + name + "`.";
    scope.def(
        name,
        f,
        extra...,
        nb::kw_only(),
        "stream"_a = nb::none(),
        nb::sig(signature(name, true, rest).c_str()),
        see.c_str());
  }
}

template <typename Scope>
void bind_reductions(Scope& scope) {
  for (const ReduceRow& row : kReductions) {
    if (!row.method && !std::is_same_v<Scope, nb::module_>) {
      continue;
    }
    define(
        scope,
        row.name,
        [f = row.function](
            const mx::array& a,
            const Axes& axis,
            bool keepdims,
            const Stream& s) {
          return f(a, axis.of(static_cast<int>(a.ndim())), keepdims, s);
        },
        kAxes,
        doc_of(
            row.name,
            row.summary,
            "int or Sequence[int], optional",
            "",
            row.example),
        "axis"_a = nb::none(),
        "keepdims"_a = false);
  }
}

template <typename Scope>
void bind_spreads(Scope& scope) {
  for (const SpreadRow& row : kSpreads) {
    define(
        scope,
        row.name,
        [f = row.function](
            const mx::array& a,
            const Axes& axis,
            bool keepdims,
            int ddof,
            const Stream& s) {
          return f(a, axis.of(static_cast<int>(a.ndim())), keepdims, ddof, s);
        },
        "axis: None | int | Sequence[int] = None, keepdims: bool = False, "
        "ddof: int = 0, *, ",
        doc_of(
            row.name,
            row.summary,
            "int or Sequence[int], optional",
            "    ddof (int): The divisor is the count minus this. Default: "
            "0.\n",
            row.example),
        "axis"_a = nb::none(),
        "keepdims"_a = false,
        "ddof"_a = 0);
  }
}

template <typename Scope>
void bind_args(Scope& scope) {
  for (const ArgRow& row : kArgs) {
    define(
        scope,
        row.name,
        [f = row.function, g = row.over_all](
            const mx::array& a,
            std::optional<int> axis,
            bool keepdims,
            const Stream& s) {
          return axis ? f(a, *axis, keepdims, s) : g(a, keepdims, s);
        },
        "axis: int | None = None, keepdims: bool = False, *, ",
        doc_of(row.name, row.summary, "int, optional", "", row.example),
        "axis"_a = nb::none(),
        "keepdims"_a = false);
  }
}

}  // namespace

void bind_array_reductions(ArrayClass& c) {
  bind_reductions(c);
  bind_spreads(c);
  bind_args(c);
}

void init_ops_reduce(nb::module_& m) {
  bind_reductions(m);
  bind_spreads(m);
  bind_args(m);
  m.def(
      "softmax",
      [](const mx::array& a, const Axes& axis, bool precise, const Stream& s) {
        return mx::softmax(a, axis.of(static_cast<int>(a.ndim())), precise, s);
      },
      nb::arg(),
      "axis"_a = nb::none(),
      nb::kw_only(),
      "precise"_a = false,
      "stream"_a = nb::none(),
      nb::sig("def softmax(a: array, /, axis: None | int | Sequence[int] = "
              "None, *, precise: bool = False, stream: StreamOrDevice = None) "
              "-> array"),
      "exp(a) divided by its sum along axes.\n\n"
      "Args:\n"
      "    a (array): Any shape; integers give float32.\n"
      "    axis (int or Sequence[int], optional): Default: all elements.\n"
      "    precise (bool): Accepted; 16-bit types always add up in float32.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.softmax(mx.array([0.0, 0.0]))\n"
      "    array([0.5, 0.5], dtype=float32)");
}

}  // namespace mlx::python
