// Elementwise functions with one or two operands: bound row by row from the
// table of operations, and those made of several rows.
#include <set>
#include <string>
#include <string_view>

#include "casters.h"
#include "convert.h"
#include "mlx/ops/elementwise.h"
#include "modules.h"

namespace mlx::python {

namespace {

using Unary = mx::array (*)(const mx::array&, mx::StreamOrDevice);
using Binary =
    mx::array (*)(const mx::array&, const mx::array&, mx::StreamOrDevice);

struct UnaryRow {
  const char* name;
  Unary function;
  const char* accepts;
  const char* summary;
};

struct BinaryRow {
  const char* name;
  Binary function;
  const char* accepts;
  const char* summary;
};

// Rows of the table that are no functions of this name and form in Python.
namespace table {
using mx::array;
using mx::StreamOrDevice;
using namespace mlx::core;
inline array equal_nan(const array& a, const array& b, StreamOrDevice s) {
  return array_equal(a, b, true, s);
}
}  // namespace table

const std::set<std::string_view> kNotByRow = {"round", "equal_nan"};

constexpr UnaryRow kUnary[] = {
#define UNARY(name, Class, accepts, result, value, tangent, summary) \
  {#name, static_cast<Unary>(table::name), #accepts, summary},
#include "ops/elementwise.def"
    {"positive", mx::positive, "all", "The input itself"},
    {"degrees", mx::degrees, "all", "Radians turned into degrees"},
    {"radians", mx::radians, "all", "Degrees turned into radians"},
    {"isnan", mx::isnan, "all", "Whether x is NaN"},
    {"isinf", mx::isinf, "all", "Whether x is infinite"},
    {"isfinite", mx::isfinite, "all", "Whether x is neither infinite nor NaN"},
    {"isposinf", mx::isposinf, "all", "Whether x is +infinity"},
    {"isneginf", mx::isneginf, "all", "Whether x is -infinity"},
    {"stop_gradient",
     mx::stop_gradient,
     "all",
     "The input, as a constant to derivatives"},
};

constexpr BinaryRow kBinary[] = {
#define BINARY(name, Class, accepts, result, value, ta, tb, summary) \
  {#name, static_cast<Binary>(table::name), #accepts, summary},
#include "ops/elementwise.def"
    {"logical_xor",
     mx::logical_xor,
     "all",
     "Whether exactly one of them is nonzero"},
};

struct Alias {
  const char* name;
  const char* of;
};

constexpr Alias kAliases[] = {
    {"acos", "arccos"},
    {"acosh", "arccosh"},
    {"asin", "arcsin"},
    {"asinh", "arcsinh"},
    {"atan", "arctan"},
    {"atanh", "arctanh"},
    {"atan2", "arctan2"},
    {"conj", "conjugate"},
    {"pow", "power"},
    {"bitwise_left_shift", "left_shift"},
    {"bitwise_right_shift", "right_shift"},
};

const char* accepted(std::string_view accepts) {
  if (accepts == "number") {
    return "any dtype but bool";
  }
  if (accepts == "real") {
    return "any dtype but complex64";
  }
  return accepts == "integral" ? "integers or bool" : "any dtype";
}

/// Numbers in the domain of every function that takes such types.
const char* example_input(std::string_view name, std::string_view accepts) {
  if (accepts == "integral") {
    return "mx.array([1, 2])";
  }
  return name == "arccosh" ? "mx.array([1.0, 1.5])" : "mx.array([0.25, 0.5])";
}

std::string unary_doc(const UnaryRow& row) {
  std::string input = example_input(row.name, row.accepts);
  return std::string(row.summary) +
         ".\n\n"
         "Args:\n"
         "    a (scalar or array): x of any shape, " +
         accepted(row.accepts) +
         ".\n"
         "    stream (Stream or Device, optional): Where to compute.\n\n"
         "Returns:\n"
         "    array: The shape of ``a``.\n\n"
         "Raises:\n"
         "    ValueError: For other types.\n\n"
         "Example:\n"
         "    >>> y = mx." +
         row.name + "(" + input +
         ")\n"
         "    >>> y.shape\n"
         "    (2,)";
}

std::string binary_doc(const BinaryRow& row) {
  std::string input = example_input(row.name, row.accepts);
  return std::string(row.summary) +
         ".\n\n"
         "Args:\n"
         "    a (scalar or array): The first operand, " +
         accepted(row.accepts) +
         ".\n"
         "    b (scalar or array): The second operand. The shapes broadcast "
         "as\n"
         "        in NumPy, the types are promoted; a number takes the type "
         "of\n"
         "        the array beside it where its kind allows.\n"
         "    stream (Stream or Device, optional): Where to compute.\n\n"
         "Returns:\n"
         "    array: The common shape.\n\n"
         "Raises:\n"
         "    ValueError: For shapes that do not broadcast and other types.\n\n"
         "Example:\n"
         "    >>> y = mx." +
         row.name + "(" + input +
         ", 2)\n"
         "    >>> y.shape\n"
         "    (2,)";
}

void bind_unary(nb::module_& m, const UnaryRow& row) {
  std::string sig = std::string("def ") + row.name +
                    "(a: array, /, *, stream: StreamOrDevice = None) -> array";
  m.def(
      row.name,
      [function = row.function](nb::handle a, const mx::StreamOrDevice& s) {
        return function(to_array(a), s);
      },
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(sig.c_str()),
      unary_doc(row).c_str());
}

void bind_binary(nb::module_& m, const BinaryRow& row) {
  std::string sig =
      std::string("def ") + row.name +
      "(a: scalar | array, b: scalar | array, /, *, stream: StreamOrDevice = "
      "None) -> array";
  m.def(
      row.name,
      [function = row.function](
          nb::handle a, nb::handle b, const mx::StreamOrDevice& s) {
        auto [x, y] = to_arrays(a, b);
        return function(x, y, s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(sig.c_str()),
      binary_doc(row).c_str());
}

}  // namespace

void init_ops_elementwise(nb::module_& m) {
  for (const UnaryRow& row : kUnary) {
    if (!kNotByRow.count(row.name)) {
      bind_unary(m, row);
    }
  }
  for (const BinaryRow& row : kBinary) {
    if (!kNotByRow.count(row.name)) {
      bind_binary(m, row);
    }
  }
  for (const Alias& alias : kAliases) {
    m.attr(alias.name) = m.attr(alias.of);
  }
}

}  // namespace mlx::python
