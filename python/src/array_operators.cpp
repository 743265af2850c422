// The operators of the class array. One operand may be a number, a NumPy
// array or another object that arrays are made of.
#include <string>

#include "array.h"
#include "casters.h"
#include "convert.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Function =
    mx::array (*)(const mx::array&, const mx::array&, mx::StreamOrDevice);

struct Operator {
  const char* stem;
  Function function;
  const char* what;
  bool in_place;
  bool reflected;
  /// Bits: integers and bool only.
  bool integral = false;
};

constexpr Operator kOperators[] = {
    {"add", mx::add, "addition", true, true},
    {"sub", mx::subtract, "subtraction", true, true},
    {"mul", mx::multiply, "multiplication", true, true},
    {"truediv", mx::divide, "division", true, true},
    {"floordiv", mx::floor_divide, "floor division", true, true},
    {"mod", mx::remainder, "the remainder", true, true},
    {"pow", mx::power, "the power", true, true},
    {"and", mx::bitwise_and, "bitwise and", true, false, true},
    {"or", mx::bitwise_or, "bitwise or", true, false, true},
    {"xor", mx::bitwise_xor, "bitwise exclusive or", true, false, true},
    {"lshift", mx::left_shift, "left shift", true, false, true},
    {"rshift", mx::right_shift, "right shift", true, false, true},
};

// The name of division in Python 2, which the interface keeps.
constexpr Operator kOldDivision = {"div", mx::divide, "division", false, true};

struct Comparison {
  const char* name;
  Function function;
  const char* what;
};

constexpr Comparison kComparisons[] = {
    {"__lt__", mx::less, "less than"},
    {"__le__", mx::less_equal, "less than or equal"},
    {"__gt__", mx::greater, "greater than"},
    {"__ge__", mx::greater_equal, "greater than or equal"},
};

[[noreturn]] void refuse(const char* what, nb::handle other) {
  mx::invalid(
      "array",
      "cannot perform ",
      what,
      " on an mlx.core.array and ",
      nb::type_name(other.type()).c_str(),
      ". Expected an array or a number.");
}

mx::array operand(const mx::array& a, nb::handle other, const char* what) {
  if (const mx::array* b = as_array(other)) {
    return *b;
  }
  if (!is_operand(other)) {
    refuse(what, other);
  }
  return to_array(other, a.dtype());
}

void check_integral(
    const Operator& op, const mx::array& a, const mx::array& b) {
  mx::Dtype t = mx::promote_types(a.dtype(), b.dtype());
  if (op.integral && mx::issubdtype(t, mx::inexact)) {
    mx::invalid("array", op.what, " of ", t, ". Expected integers or bool.");
  }
}

mx::array apply(const Operator& op, const mx::array& a, nb::handle other) {
  mx::array b = operand(a, other, op.what);
  check_integral(op, a, b);
  return op.function(a, b, {});
}

std::string signature(const std::string& name) {
  return "def " + name + "(self, other: scalar | array) -> array";
}

void bind_operator(ArrayClass& c, const Operator& op) {
  std::string plain = std::string("__") + op.stem + "__";
  c.def(
      plain.c_str(),
      [&op](const mx::array& a, nb::handle b) { return apply(op, a, b); },
      "other"_a.none(),
      nb::sig(signature(plain).c_str()));
  if (op.reflected) {
    std::string reflected = std::string("__r") + op.stem + "__";
    c.def(
        reflected.c_str(),
        [&op](const mx::array& b, nb::handle a) {
          return op.function(operand(b, a, op.what), b, {});
        },
        "other"_a.none(),
        nb::sig(signature(reflected).c_str()));
  }
  if (op.in_place) {
    std::string in_place = std::string("__i") + op.stem + "__";
    c.def(
        in_place.c_str(),
        [&op](mx::array& a, nb::handle b) -> mx::array& {
          if (op.function == mx::divide &&
              !mx::issubdtype(a.dtype(), mx::inexact)) {
            mx::invalid(
                "array",
                "in-place division of ",
                a.dtype(),
                ". Expected a floating or complex array.");
          }
          a.overwrite_descriptor(apply(op, a, b));
          return a;
        },
        "other"_a.none(),
        nb::rv_policy::none,
        nb::sig(signature(in_place).c_str()));
  }
}

void bind_comparisons(ArrayClass& c) {
  for (const Comparison& op : kComparisons) {
    c.def(
        op.name,
        [&op](const mx::array& a, nb::handle b) {
          return op.function(a, operand(a, b, op.what), {});
        },
        "other"_a.none(),
        nb::sig(signature(op.name).c_str()));
  }
  c.def(
       "__eq__",
       [](const mx::array& a, nb::handle b) -> nb::object {
         return is_operand(b) ? nb::cast(mx::equal(a, to_array(b, a.dtype())))
                              : nb::borrow(Py_False);
       },
       "other"_a.none(),
       nb::sig("def __eq__(self, other: object) -> array | bool"))
      .def(
          "__ne__",
          [](const mx::array& a, nb::handle b) -> nb::object {
            return is_operand(b)
                       ? nb::cast(mx::not_equal(a, to_array(b, a.dtype())))
                       : nb::borrow(Py_True);
          },
          "other"_a.none(),
          nb::sig("def __ne__(self, other: object) -> array | bool"))
      .def(
          "__hash__",
          [](nb::handle self) {
            // Identity, in the way of object: addresses end in zeros.
            auto bits = reinterpret_cast<uintptr_t>(self.ptr());
            return static_cast<Py_hash_t>((bits >> 4) | (bits << 60));
          },
          nb::sig("def __hash__(self) -> int"));
}

void bind_unary(ArrayClass& c) {
  c.def(
       "__neg__",
       [](const mx::array& a) { return mx::negative(a); },
       nb::sig("def __neg__(self) -> array"))
      .def(
          "__pos__",
          [](const mx::array& a) { return a; },
          nb::sig("def __pos__(self) -> array"))
      .def(
          "__abs__",
          [](const mx::array& a) { return mx::abs(a); },
          nb::sig("def __abs__(self) -> array"))
      .def(
          "__invert__",
          [](const mx::array& a) {
            if (mx::issubdtype(a.dtype(), mx::inexact)) {
              mx::invalid(
                  "array",
                  "bitwise inversion of ",
                  a.dtype(),
                  ". Expected integers or bool.");
            }
            return mx::bitwise_invert(a);
          },
          nb::sig("def __invert__(self) -> array"));
}

}  // namespace

void bind_array_operators(ArrayClass& c) {
  for (const Operator& op : kOperators) {
    bind_operator(c, op);
  }
  bind_operator(c, kOldDivision);
  bind_comparisons(c);
  bind_unary(c);
  c.def(
       "__matmul__",
       [](const mx::array& a, const mx::array& b) { return mx::matmul(a, b); },
       "other"_a,
       nb::sig("def __matmul__(self, other: array) -> array"))
      .def(
          "__imatmul__",
          [](mx::array& a, const mx::array& b) -> mx::array& {
            a.overwrite_descriptor(mx::matmul(a, b));
            return a;
          },
          "other"_a,
          nb::rv_policy::none,
          nb::sig("def __imatmul__(self, other: array) -> array"));
}

}  // namespace mlx::python
