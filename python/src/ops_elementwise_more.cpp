// Elementwise functions with parameters, conditions or several results, and
// comparisons of whole arrays.
#include "casters.h"
#include "convert.h"
#include "mlx/ops.h"
#include "modules.h"

namespace mlx::python {

namespace {

std::optional<mx::array> limit(nb::handle h, const mx::array& a) {
  return h.is_none() ? std::nullopt : std::optional(to_array(h, a.dtype()));
}

void bind_choices(nb::module_& m) {
  m.def(
      "where",
      [](nb::handle condition,
         nb::handle x,
         nb::handle y,
         const mx::StreamOrDevice& s) {
        auto [a, b] = to_arrays(x, y);
        return mx::where(to_array(condition), a, b, s);
      },
      nb::arg(),
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def where(condition: scalar | array, x: scalar | array, y: "
              "scalar | array, /, *, stream: StreamOrDevice = None) -> array"),
      "``x`` where the condition is not zero, else ``y``.\n\n"
      "Args:\n"
      "    condition (scalar or array): Any dtype.\n"
      "    x (scalar or array): Values where it holds.\n"
      "    y (scalar or array): Values elsewhere. The three shapes broadcast,\n"
      "        the types of x and y are promoted.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The common shape.\n\n"
      "Raises:\n"
      "    ValueError: For shapes that do not broadcast.\n\n"
      "Example:\n"
      "    >>> mx.where(mx.array([True, False]), 1, 2)\n"
      "    array([1, 2], dtype=int32)");
  m.def(
      "clip",
      [](const mx::array& a,
         nb::handle a_min,
         nb::handle a_max,
         const mx::StreamOrDevice& s) {
        return mx::clip(a, limit(a_min, a), limit(a_max, a), s);
      },
      nb::arg(),
      "a_min"_a.none(),
      "a_max"_a.none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def clip(a: array, /, a_min: scalar | array | None, a_max: "
              "scalar | array | None, *, stream: StreamOrDevice = None) -> "
              "array"),
      "The values limited to an interval.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    a_min (scalar, array or None): The lower limit, broadcasts to a.\n"
      "    a_max (scalar, array or None): The upper limit, broadcasts to a.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: When both limits are None.\n\n"
      "Example:\n"
      "    >>> mx.clip(mx.array([-1, 0, 5]), 0, 3)\n"
      "    array([0, 0, 3], dtype=int32)");
  m.def(
      "nan_to_num",
      [](nb::handle a,
         float nan,
         std::optional<float> posinf,
         std::optional<float> neginf,
         const mx::StreamOrDevice& s) {
        return mx::nan_to_num(to_array(a), nan, posinf, neginf, s);
      },
      nb::arg(),
      "nan"_a = 0.0f,
      "posinf"_a = nb::none(),
      "neginf"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def nan_to_num(a: scalar | array, /, nan: float = 0, posinf: "
              "float | None = None, neginf: float | None = None, *, stream: "
              "StreamOrDevice = None) -> array"),
      "NaN and infinities replaced by numbers.\n\n"
      "Args:\n"
      "    a (scalar or array): Any shape; integers are returned as they are.\n"
      "    nan (float): In place of NaN. Default: 0.\n"
      "    posinf (float, optional): In place of +infinity. Default: the\n"
      "        largest number of the type.\n"
      "    neginf (float, optional): In place of -infinity. Default: the\n"
      "        most negative number of the type.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.nan_to_num(mx.array([mx.nan, mx.inf]), posinf=9)\n"
      "    array([0, 9], dtype=float32)");
}

void bind_rounding(nb::module_& m) {
  m.def(
      "round",
      [](nb::handle a, int decimals, const mx::StreamOrDevice& s) {
        return mx::round(to_array(a), decimals, s);
      },
      nb::arg(),
      "decimals"_a = 0,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def round(a: array, /, decimals: int = 0, *, stream: "
              "StreamOrDevice = None) -> array"),
      "The nearest number with so many decimals, halves to even.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    decimals (int): May be negative. Default: 0.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.round(mx.array([1.25, 2.5]), 1)\n"
      "    array([1.2, 2.5], dtype=float32)");
  m.def(
      "divmod",
      [](nb::handle a, nb::handle b, const mx::StreamOrDevice& s) {
        auto [x, y] = to_arrays(a, b);
        return mx::divmod(x, y, s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def divmod(a: scalar | array, b: scalar | array, /, *, stream: "
              "StreamOrDevice = None) -> list[array]"),
      "The quotient rounded down and the remainder.\n\n"
      "Args:\n"
      "    a (scalar or array): The dividend.\n"
      "    b (scalar or array): The divisor. Shapes broadcast, types are\n"
      "        promoted.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    list[array]: `floor_divide` and `remainder`.\n\n"
      "Example:\n"
      "    >>> quotient, rest = mx.divmod(mx.array(7), 2)\n"
      "    >>> quotient.item(), rest.item()\n"
      "    (3, 1)");
}

void bind_comparisons(nb::module_& m) {
  static constexpr const char* kArgs =
      "Args:\n"
      "    a (array): The first array.\n"
      "    b (array): The second one; shapes broadcast.\n"
      "    rtol (float): Relative tolerance. Default: 1e-5.\n"
      "    atol (float): Absolute tolerance. Default: 1e-8.\n"
      "    equal_nan (bool): Whether NaN is close to NaN. Default: False.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n";
  m.def(
      "isclose",
      [](const mx::array& a,
         const mx::array& b,
         double rtol,
         double atol,
         bool equal_nan,
         const mx::StreamOrDevice& s) {
        return mx::isclose(a, b, rtol, atol, equal_nan, s);
      },
      nb::arg(),
      nb::arg(),
      "rtol"_a = 1e-5,
      "atol"_a = 1e-8,
      nb::kw_only(),
      "equal_nan"_a = false,
      "stream"_a = nb::none(),
      nb::sig("def isclose(a: array, b: array, /, rtol: float = 1e-05, atol: "
              "float = 1e-08, *, equal_nan: bool = False, stream: "
              "StreamOrDevice = None) -> array"),
      (std::string("Whether ``|a - b| <= atol + rtol * |b|``, element by "
                   "element.\n\nInfinities are close when equal.\n\n") +
       kArgs +
       "Returns:\n"
       "    array: bool of the common shape.\n\n"
       "Example:\n"
       "    >>> mx.isclose(mx.array([1.0, 2.0]), mx.array([1.0, 2.1]))\n"
       "    array([True, False], dtype=bool)")
          .c_str());
  m.def(
      "allclose",
      [](const mx::array& a,
         const mx::array& b,
         double rtol,
         double atol,
         bool equal_nan,
         const mx::StreamOrDevice& s) {
        return mx::allclose(a, b, rtol, atol, equal_nan, s);
      },
      nb::arg(),
      nb::arg(),
      "rtol"_a = 1e-5,
      "atol"_a = 1e-8,
      nb::kw_only(),
      "equal_nan"_a = false,
      "stream"_a = nb::none(),
      nb::sig("def allclose(a: array, b: array, /, rtol: float = 1e-05, atol: "
              "float = 1e-08, *, equal_nan: bool = False, stream: "
              "StreamOrDevice = None) -> array"),
      (std::string("Whether all elements are close as `isclose` says.\n\n") +
       kArgs +
       "Returns:\n"
       "    array: A 0-d bool.\n\n"
       "Example:\n"
       "    >>> mx.allclose(mx.array([1.0]), mx.array([1.0]))\n"
       "    array(True, dtype=bool)")
          .c_str());
  m.def(
      "array_equal",
      [](nb::handle a,
         nb::handle b,
         bool equal_nan,
         const mx::StreamOrDevice& s) {
        auto [x, y] = to_arrays(a, b);
        return mx::array_equal(x, y, equal_nan, s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "equal_nan"_a = false,
      "stream"_a = nb::none(),
      nb::sig("def array_equal(a: scalar | array, b: scalar | array, /, *, "
              "equal_nan: bool = False, stream: StreamOrDevice = None) -> "
              "array"),
      "Whether shapes and all elements are equal.\n\n"
      "Args:\n"
      "    a (scalar or array): The first array.\n"
      "    b (scalar or array): The second one.\n"
      "    equal_nan (bool): Whether NaN equals NaN. Default: False.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: A 0-d bool.\n\n"
      "Example:\n"
      "    >>> mx.array_equal(mx.array([1, 2]), mx.array([1, 2]))\n"
      "    array(True, dtype=bool)");
}

}  // namespace

void init_ops_elementwise_more(nb::module_& m) {
  bind_choices(m);
  bind_rounding(m);
  bind_comparisons(m);
}

}  // namespace mlx::python
