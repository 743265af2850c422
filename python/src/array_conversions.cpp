// What an array turns into: Python numbers, lists, text, NumPy, DLPack,
// copies, pickles.
#include <sstream>

#include "array.h"
#include "casters.h"
#include "convert.h"
#include "gil.h"
#include "mlx/ops/creation.h"
#include "mlx/ops/shape.h"
#include "types/error.h"

namespace mlx::python {

namespace {

std::string text_of(const mx::array& x) {
  mx::array a = readable(x);
  std::ostringstream os;
  {
    WithoutGil release;
    os << a;
  }
  return os.str();
}

nb::object index_of(const mx::array& a) {
  if (a.ndim() != 0 || !mx::issubdtype(a.dtype(), mx::integer)) {
    throw nb::type_error(
        "[array] not an index. Expected a 0-dimensional integer array.");
  }
  return to_scalar(a);
}

nb::object format(const mx::array& a, const nb::object& spec) {
  if (a.ndim() == 0) {
    return nb::steal(PyObject_Format(to_scalar(a).ptr(), spec.ptr()));
  }
  if (nb::len(spec) > 0) {
    throw nb::type_error(
        "[array] format not accepted for an array with axes. Expected an empty "
        "one.");
  }
  std::string text = text_of(a);
  return nb::str(text.c_str(), text.size());
}

nb::tuple get_state(const mx::array& a) {
  bool half = a.dtype() == mx::bfloat16;
  nb::object data = to_numpy(half ? mx::view(a, mx::uint16) : a);
  return nb::make_tuple(data.attr("copy")(), static_cast<int>(a.dtype().val()));
}

mx::Dtype dtype_of_number(int number) {
  static constexpr mx::Dtype kDtypes[] = {
      mx::bool_,
      mx::uint8,
      mx::uint16,
      mx::uint32,
      mx::uint64,
      mx::int8,
      mx::int16,
      mx::int32,
      mx::int64,
      mx::float16,
      mx::float32,
      mx::float64,
      mx::bfloat16,
      mx::complex64};
  if (number < 0 || number >= mx::kNumDtypes) {
    mx::invalid("array", "dtype number ", number, ". Expected 0 to 13.");
  }
  return kDtypes[number];
}

void set_state(mx::array& self, const nb::tuple& state) {
  mx::Dtype dtype = dtype_of_number(nb::cast<int>(state[1]));
  bool half = dtype == mx::bfloat16;
  auto data = import_data(state[0], half ? mx::uint16 : dtype);
  if (!data) {
    mx::invalid("array", "pickle without data. Expected a NumPy array.");
  }
  new (&self) mx::array(half ? mx::view(*data, mx::bfloat16) : *data);
}

void bind_numbers(ArrayClass& c) {
  c.def(
       "item",
       to_scalar,
       nb::sig("def item(self) -> scalar"),
       "The only element as a Python bool, int, float or complex.\n\n"
       "Raises:\n"
       "    ValueError: Unless there is exactly one element.\n\n"
       "Example:\n"
       "    >>> mx.array([2.5]).item()\n"
       "    2.5")
      .def(
          "tolist",
          to_list,
          nb::sig("def tolist(self) -> list_or_scalar"),
          "The elements as nested lists, those of a 0-d array as a scalar.\n\n"
          "Example:\n"
          "    >>> mx.array([[1, 2], [3, 4]]).tolist()\n"
          "    [[1, 2], [3, 4]]")
      .def(
          "__bool__",
          [](const mx::array& a) {
            return PyObject_IsTrue(to_scalar(a).ptr()) == 1;
          },
          "Whether the only element is not zero.")
      .def(
          "__int__",
          [](const mx::array& a) {
            return nb::steal(PyNumber_Long(to_scalar(a).ptr()));
          },
          nb::sig("def __int__(self) -> int"),
          "The only element as int.")
      .def(
          "__float__",
          [](const mx::array& a) {
            return nb::steal(PyNumber_Float(to_scalar(a).ptr()));
          },
          nb::sig("def __float__(self) -> float"),
          "The only element as float.")
      .def(
          "__complex__",
          [](const mx::array& a) {
            return nb::module_::import_("builtins")
                .attr("complex")(to_scalar(a));
          },
          nb::sig("def __complex__(self) -> complex"),
          "The only element as complex.")
      .def(
          "__index__",
          index_of,
          nb::sig("def __index__(self) -> int"),
          "The element of a 0-d integer array as int.");
}

void bind_text_and_copies(ArrayClass& c) {
  c.def("__repr__", text_of, "The elements and the dtype; computes them.")
      .def("__str__", text_of, "The elements and the dtype; computes them.")
      .def(
          "__format__",
          format,
          nb::arg(),
          nb::sig("def __format__(self, format_spec: object, /) -> str"),
          "A 0-d array is formatted as its element, others only plainly.")
      .def(
          "__copy__",
          [](const mx::array& a) { return a; },
          nb::sig("def __copy__(self) -> array"),
          "A new handle on the same content.")
      .def(
          "__deepcopy__",
          [](const mx::array& a, nb::handle) { return a; },
          "memo"_a,
          nb::sig("def __deepcopy__(self, memo: dict) -> array"),
          "A new handle on the same content.")
      .def(
          "__getstate__",
          get_state,
          nb::sig("def __getstate__(self) -> tuple"),
          "NumPy data and the number of the dtype, for pickle.")
      .def(
          "__setstate__",
          set_state,
          nb::arg(),
          nb::sig("def __setstate__(self, state: tuple, /) -> None"),
          "Rebuilds a pickled array.");
}

void check_dl_device(nb::handle device) {
  if (device.is_none()) {
    return;
  }
  auto [type, id] = nb::cast<std::pair<int, int>>(device);
  constexpr int kCpu = 1;
  if (type != kCpu || id != 0) {
    throw nb::buffer_error(
        "[array] DLPack device not available. Expected (1, 0), the CPU.");
  }
}

void bind_exports(ArrayClass& c) {
  c.def(
       "__array__",
       [](const mx::array& a, nb::handle, nb::handle) { return to_numpy(a); },
       "dtype"_a = nb::none(),
       "copy"_a = nb::none(),
       nb::sig("def __array__(self, dtype: object = None, copy: object = None) "
               "-> numpy.typing.NDArray"),
       "A NumPy array on the same memory. Raises TypeError for bfloat16.")
      .def(
          "__array_namespace__",
          [](const mx::array&, const std::optional<std::string>& api_version) {
            if (api_version) {
              mx::invalid(
                  "array",
                  "API version ",
                  *api_version,
                  ". Expected none to be asked for.");
            }
            return nb::module_::import_("mlx.core");
          },
          "api_version"_a = nb::none(),
          nb::sig("def __array_namespace__(self, api_version: str | None = "
                  "None) -> types.ModuleType"),
          "The module mlx.core.")
      .def(
          "__dlpack__",
          [](const mx::array& a,
             nb::handle,
             nb::handle,
             nb::handle dl_device,
             std::optional<bool> copy) {
            check_dl_device(dl_device);
            return to_dlpack(
                copy.value_or(false) ? mx::contiguous(mx::copy(a)) : a);
          },
          nb::kw_only(),
          "stream"_a = nb::none(),
          "max_version"_a = nb::none(),
          "dl_device"_a = nb::none(),
          "copy"_a = nb::none(),
          nb::sig("def __dlpack__(self, *, stream: object = None, max_version: "
                  "object = None, dl_device: tuple[int, int] | None = None, "
                  "copy: bool | None = None) -> types.CapsuleType"),
          "A DLPack capsule of the computed elements.")
      .def(
          "__dlpack_device__",
          [](const mx::array&) { return std::pair(1, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
          "(1, 0): memory of the CPU.");
}

}  // namespace

void bind_array_conversions(ArrayClass& c) {
  bind_numbers(c);
  bind_text_and_copies(c);
  bind_exports(c);
}

}  // namespace mlx::python
