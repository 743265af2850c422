// Functions that make arrays from numbers, shapes and other objects.
#include "casters.h"
#include "convert.h"
#include "mlx/ops.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using OptionalDtype = std::optional<mx::Dtype>;

/// An argument of arange or linspace: int or float, or nothing.
struct Number {
  bool given = false;
  bool is_int = false;
  double value = 0;
  int64_t integer = 0;
};

Number read_number(nb::handle h, const char* op) {
  if (h.is_none()) {
    return {};
  }
  if (PyBool_Check(h.ptr())) {
    mx::invalid(op, "bool given. Expected int or float.");
  }
  Number n{true};
  n.is_int = detail::read_integer(h, n.integer);
  if (n.is_int) {
    n.value = static_cast<double>(n.integer);
    return n;
  }
  if (!PyNumber_Check(h.ptr()) || PyComplex_Check(h.ptr())) {
    throw nb::type_error(mx::message(
                             op,
                             "type not accepted: ",
                             nb::type_name(h.type()).c_str(),
                             ". Expected int or float.")
                             .c_str());
  }
  n.value = PyFloat_AsDouble(h.ptr());
  if (n.value == -1.0 && PyErr_Occurred()) {
    throw nb::python_error();
  }
  return n;
}

mx::Dtype arange_dtype(
    const Number& start, const Number& stop, const Number& step) {
  if (!(start.is_int && stop.is_int && step.is_int)) {
    return mx::float32;
  }
  auto small = [](const Number& n) {
    return n.integer >= std::numeric_limits<int32_t>::min() &&
           n.integer <= std::numeric_limits<int32_t>::max();
  };
  return small(start) && small(stop) && small(step) ? mx::int32 : mx::int64;
}

mx::array arange(
    Number start,
    Number stop,
    Number step,
    OptionalDtype dtype,
    const mx::StreamOrDevice& s) {
  if (!stop.given) {
    stop = start;
    start = {true, true};
  }
  if (!step.given) {
    step = {true, true, 1.0, 1};
  }
  return mx::arange(
      start.value,
      stop.value,
      step.value,
      dtype.value_or(arange_dtype(start, stop, step)),
      s);
}

void bind_ranges(nb::module_& m) {
  m.def(
      "arange",
      [](nb::handle start,
         nb::handle stop,
         nb::handle step,
         OptionalDtype dtype,
         const mx::StreamOrDevice& s) {
        return arange(
            read_number(start, "arange"),
            read_number(stop, "arange"),
            read_number(step, "arange"),
            dtype,
            s);
      },
      "start"_a,
      "stop"_a.none(),
      "step"_a = nb::none(),
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def arange(start: int | float, stop: None | int | float, step: "
              "None | int | float = None, dtype: Dtype | None = None, *, "
              "stream: StreamOrDevice = None) -> array"),
      "Numbers from start up to, without, stop.\n\n"
      "Called with one number, that is ``stop`` and the start is 0.\n\n"
      "Args:\n"
      "    start (int or float): The first number.\n"
      "    stop (int or float): The end, not included.\n"
      "    step (int or float, optional): The distance. Default: 1.\n"
      "    dtype (Dtype, optional): Default: int32 (int64 where needed) when\n"
      "        all numbers are int, else float32.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: 1-d.\n\n"
      "Raises:\n"
      "    ValueError: For a step of 0 and for numbers that are not finite.\n\n"
      "Example:\n"
      "    >>> mx.arange(1, 4)\n"
      "    array([1, 2, 3], dtype=int32)");
  m.def(
      "arange",
      [](nb::handle stop,
         nb::handle step,
         OptionalDtype dtype,
         const mx::StreamOrDevice& s) {
        return arange(
            read_number(stop, "arange"),
            {},
            read_number(step, "arange"),
            dtype,
            s);
      },
      "stop"_a,
      "step"_a = nb::none(),
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def arange(stop: int | float, step: None | int | float = None, "
              "dtype: Dtype | None = None, *, stream: StreamOrDevice = None) "
              "-> array"));
  m.def(
      "linspace",
      [](nb::handle start,
         nb::handle stop,
         std::optional<int> num,
         bool endpoint,
         OptionalDtype dtype,
         const mx::StreamOrDevice& s) {
        return mx::linspace(
            read_number(start, "linspace").value,
            read_number(stop, "linspace").value,
            num.value_or(50),
            endpoint,
            dtype.value_or(mx::float32),
            s);
      },
      "start"_a,
      "stop"_a,
      "num"_a.none() = 50,
      "endpoint"_a = true,
      "dtype"_a.none() = mx::float32,
      "stream"_a = nb::none(),
      nb::sig("def linspace(start: scalar, stop: scalar, num: int | None = 50, "
              "endpoint: bool = True, dtype: Dtype | None = float32, stream: "
              "StreamOrDevice = None) -> array"),
      "Numbers at equal distances.\n\n"
      "Args:\n"
      "    start (scalar): The first number.\n"
      "    stop (scalar): The last number, or the end when not included.\n"
      "    num (int): How many. Default: 50.\n"
      "    endpoint (bool): Whether stop is included. Default: True.\n"
      "    dtype (Dtype): Default: float32.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: Shape (num,).\n\n"
      "Example:\n"
      "    >>> mx.linspace(0, 1, 3)\n"
      "    array([0, 0.5, 1], dtype=float32)");
}

void bind_constant(nb::module_& m, const char* name, bool one) {
  std::string stem = name;
  std::string words = stem == "empty" ? "zeros" : stem;
  std::string sig =
      "def " + stem +
      "(shape: int | Sequence[int], dtype: Dtype | None = float32, *, stream: "
      "StreamOrDevice = None) -> array";
  std::string example = std::string("    array([") + (one ? "1, 1" : "0, 0") +
                        "], dtype=float32)";
  std::string doc =
      "An array of " + words +
      ".\n\n"
      "Args:\n"
      "    shape (int or Sequence[int]): The lengths of the axes.\n"
      "    dtype (Dtype): Default: float32.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: For negative lengths.\n\n"
      "Example:\n"
      "    >>> mx." +
      stem + "(2)\n" + example;
  m.def(
      name,
      [one, name](
          const Lengths& shape,
          OptionalDtype dtype,
          const mx::StreamOrDevice& s) {
        mx::Dtype t = dtype.value_or(mx::float32);
        mx::Shape lengths = shape.shape(name);
        return one ? mx::ones(lengths, t, s) : mx::zeros(lengths, t, s);
      },
      "shape"_a,
      "dtype"_a.none() = mx::float32,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(sig.c_str()),
      doc.c_str());
  std::string like = stem + "_like";
  std::string like_sig = "def " + like +
                         "(a: array, /, dtype: Dtype | None = None, *, stream: "
                         "StreamOrDevice = None) -> array";
  std::string like_doc =
      "An array of " + words +
      " with the shape of another.\n\n"
      "Args:\n"
      "    a (array): Gives the shape.\n"
      "    dtype (Dtype, optional): Default: the type of a.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx." +
      like + "(mx.array([0.5, 1.5]))\n" + example;
  m.def(
      like.c_str(),
      [one](
          const mx::array& a,
          OptionalDtype dtype,
          const mx::StreamOrDevice& s) {
        mx::Dtype t = dtype.value_or(a.dtype());
        return one ? mx::ones_like(a, t, s) : mx::zeros_like(a, t, s);
      },
      nb::arg(),
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(like_sig.c_str()),
      like_doc.c_str());
}

// A number gets its final type at once: by way of float32 a float would lose
// digits of float64.
mx::array filling(nb::handle value, OptionalDtype dtype) {
  bool is_number = PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()) ||
                   PyComplex_Check(value.ptr());
  return is_number ? create_array(value, dtype) : to_array(value);
}

void bind_full(nb::module_& m) {
  m.def(
      "full",
      [](const Lengths& shape,
         nb::handle vals,
         OptionalDtype dtype,
         const mx::StreamOrDevice& s) {
        mx::array v = filling(vals, dtype);
        return mx::full(shape.shape("full"), v, dtype.value_or(v.dtype()), s);
      },
      "shape"_a,
      "vals"_a,
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def full(shape: int | Sequence[int], vals: scalar | array, "
              "dtype: Dtype | None = None, *, stream: StreamOrDevice = None) "
              "-> array"),
      "An array filled with a value.\n\n"
      "Args:\n"
      "    shape (int or Sequence[int]): The lengths of the axes.\n"
      "    vals (scalar or array): The value, broadcast to the shape.\n"
      "    dtype (Dtype, optional): Default: the type of the value.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: When vals does not broadcast to the shape.\n\n"
      "Example:\n"
      "    >>> mx.full((2, 2), 7)\n"
      "    array([[7, 7],\n"
      "           [7, 7]], dtype=int32)");
  m.def(
      "full_like",
      [](const mx::array& a,
         nb::handle vals,
         OptionalDtype dtype,
         const mx::StreamOrDevice& s) {
        mx::Dtype wanted = dtype.value_or(a.dtype());
        return mx::full_like(a, filling(vals, wanted), wanted, s);
      },
      nb::arg(),
      "vals"_a,
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def full_like(a: array, /, vals: scalar | array, dtype: Dtype | "
              "None = None, *, stream: StreamOrDevice = None) -> array"),
      "An array filled with a value, with the shape of another.\n\n"
      "Args:\n"
      "    a (array): Gives the shape.\n"
      "    vals (scalar or array): The value, broadcast to the shape.\n"
      "    dtype (Dtype, optional): Default: the type of a.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.full_like(mx.array([1, 2]), 3)\n"
      "    array([3, 3], dtype=int32)");
}

void bind_diagonals(nb::module_& m) {
  m.def(
      "eye",
      [](int n,
         std::optional<int> rows,
         int k,
         OptionalDtype dtype,
         const mx::StreamOrDevice& s) {
        return mx::eye(n, rows.value_or(n), k, dtype.value_or(mx::float32), s);
      },
      "n"_a,
      "m"_a = nb::none(),
      "k"_a = 0,
      "dtype"_a.none() = mx::float32,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def eye(n: int, m: int | None = None, k: int = 0, dtype: Dtype "
              "| None = float32, *, stream: StreamOrDevice = None) -> array"),
      "A matrix with ones on a diagonal and zeros elsewhere.\n\n"
      "Args:\n"
      "    n (int): The number of rows.\n"
      "    m (int, optional): The number of columns. Default: n.\n"
      "    k (int): The diagonal, positive above the main one. Default: 0.\n"
      "    dtype (Dtype): Default: float32.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: Shape (n, m).\n\n"
      "Example:\n"
      "    >>> mx.eye(2, 3)\n"
      "    array([[1, 0, 0],\n"
      "           [0, 1, 0]], dtype=float32)");
  m.def(
      "identity",
      [](int n, OptionalDtype dtype, const mx::StreamOrDevice& s) {
        return mx::identity(n, dtype.value_or(mx::float32), s);
      },
      "n"_a,
      "dtype"_a.none() = mx::float32,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def identity(n: int, dtype: Dtype | None = float32, *, stream: "
              "StreamOrDevice = None) -> array"),
      "The square identity matrix.\n\n"
      "Args:\n"
      "    n (int): Rows and columns.\n"
      "    dtype (Dtype): Default: float32.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.identity(2)\n"
      "    array([[1, 0],\n"
      "           [0, 1]], dtype=float32)");
  m.def(
      "tri",
      [](int n,
         std::optional<int> columns,
         int k,
         OptionalDtype dtype,
         const mx::StreamOrDevice& s) {
        return mx::tri(
            n, columns.value_or(n), k, dtype.value_or(mx::float32), s);
      },
      "n"_a,
      "m"_a = nb::none(),
      "k"_a = 0,
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def tri(n: int, m: int | None = None, k: int = 0, dtype: Dtype "
              "| None = None, *, stream: StreamOrDevice = None) -> array"),
      "A matrix with ones on and below a diagonal.\n\n"
      "Args:\n"
      "    n (int): The number of rows.\n"
      "    m (int, optional): The number of columns. Default: n.\n"
      "    k (int): The diagonal. Default: 0.\n"
      "    dtype (Dtype, optional): Default: float32.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.tri(2)\n"
      "    array([[1, 0],\n"
      "           [1, 1]], dtype=float32)");
  for (bool lower : {true, false}) {
    std::string name = lower ? "tril" : "triu";
    std::string sig = "def " + name +
                      "(x: array, k: int = 0, *, stream: StreamOrDevice = "
                      "None) -> array";
    std::string doc =
        std::string("Zeros ") + (lower ? "above" : "below") +
        " a diagonal of the last two axes.\n\n"
        "Args:\n"
        "    x (array): At least 2 axes.\n"
        "    k (int): The diagonal. Default: 0.\n"
        "    stream (Stream or Device, optional): Where to compute.\n\n"
        "Raises:\n"
        "    ValueError: For fewer than 2 axes.\n\n"
        "Example:\n"
        "    >>> mx." +
        name + "(mx.ones((2, 2)))\n" +
        (lower ? "    array([[1, 0],\n           [1, 1]], dtype=float32)"
               : "    array([[1, 1],\n           [0, 1]], dtype=float32)");
    m.def(
        name.c_str(),
        [lower](const mx::array& x, int k, const mx::StreamOrDevice& s) {
          return lower ? mx::tril(x, k, s) : mx::triu(x, k, s);
        },
        "x"_a,
        "k"_a = 0,
        nb::kw_only(),
        "stream"_a = nb::none(),
        nb::sig(sig.c_str()),
        doc.c_str());
  }
}

}  // namespace

void init_ops_creation(nb::module_& m) {
  bind_ranges(m);
  bind_constant(m, "zeros", false);
  bind_constant(m, "ones", true);
  bind_constant(m, "empty", false);
  bind_full(m);
  bind_diagonals(m);
}

}  // namespace mlx::python
