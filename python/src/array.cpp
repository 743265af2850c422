// The class array: making one, its properties, indexing, iteration; the
// helper classes ArrayAt, ArrayIterator and ArrayLike.
#include "array.h"

#include "casters.h"
#include "convert.h"
#include "indexing.h"
#include "mlx/ops.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

/// What a.at and a.at[index] give.
struct ArrayAt {
  mx::array a;
  nb::object index;

  mx::array update(const nb::object& value, AtUpdate how) const {
    if (!index.is_valid()) {
      mx::invalid(
          "array.at", "no index given. Expected for example x.at[0].add(4).");
    }
    return updated_at(a, index, value, how);
  }
};

/// Goes along axis 0.
struct ArrayIterator {
  mx::array a;
  int next = 0;
};

/// Any object with __mlx_array__, for functions that take arrays only.
struct ArrayLike {
  nb::object object;
};

void bind_array_at(nb::module_& m) {
  nb::class_<ArrayAt> c(
      m,
      "ArrayAt",
      "The elements of an array at an index, to be updated into a new "
      "array.\n\n"
      "Made by `array.at`. Unlike ``a[index] += value`` the updates of "
      "repeated\n"
      "indices all count.\n\n"
      "Example:\n"
      "    >>> a = mx.zeros(3)\n"
      "    >>> a.at[mx.array([0, 0, 2])].add(1)\n"
      "    array([2, 0, 1], dtype=float32)");
  c.def(
      "__getitem__",
      [](const ArrayAt& at, nb::object indices) {
        return ArrayAt{at.a, std::move(indices)};
      },
      "indices"_a.none(),
      nb::sig("def __getitem__(self, indices: object) -> ArrayAt"),
      "The elements at an index expression as of `array.__getitem__`.");
  static constexpr std::pair<const char*, AtUpdate> kUpdates[] = {
      {"add", AtUpdate::add},
      {"subtract", AtUpdate::subtract},
      {"multiply", AtUpdate::multiply},
      {"divide", AtUpdate::divide},
      {"maximum", AtUpdate::maximum},
      {"minimum", AtUpdate::minimum}};
  for (auto [name, how] : kUpdates) {
    std::string sig =
        std::string("def ") + name + "(self, value: scalar | array) -> array";
    std::string doc =
        std::string("A new array with the elements updated by `") + name +
        "`.\n\n"
        "Args:\n"
        "    value (scalar or array): Broadcasts to the indexed elements.\n\n"
        "Returns:\n"
        "    array: Shape and dtype of the array that `at` was taken of.";
    c.def(
        name,
        [how](const ArrayAt& at, const nb::object& value) {
          return at.update(value, how);
        },
        "value"_a,
        nb::sig(sig.c_str()),
        doc.c_str());
  }
}

void bind_array_iterator(nb::module_& m) {
  nb::class_<ArrayIterator>(
      m, "ArrayIterator", "An iterator over the first axis of an array.")
      .def(
          "__next__",
          [](ArrayIterator& it) {
            if (it.next >= it.a.shape(0)) {
              throw nb::stop_iteration();
            }
            return *mx::array::ArrayIterator(it.a, it.next++);
          },
          nb::sig("def __next__(self) -> array"),
          "The next sub-array.")
      .def(
          "__iter__",
          [](nb::object self) { return self; },
          nb::sig("def __iter__(self) -> ArrayIterator"),
          "The iterator itself.");
}

constexpr const char* kArrayDoc =
    "An array of elements of one type, computed when it is needed.\n\n"
    "Operations on arrays record what is to be computed; `mlx.core.eval`,\n"
    "printing, conversion to NumPy, `item` and `tolist` compute it.\n\n"
    "Args:\n"
    "    val (scalar, list, tuple, array, or object with the buffer protocol,\n"
    "        ``__dlpack__`` or ``__mlx_array__``): The elements. Lists may be\n"
    "        nested and may hold arrays. Data are copied.\n"
    "    dtype (Dtype, optional): Default: ``int32`` for int (``int64`` where\n"
    "        needed), ``float32`` for float, ``complex64`` for complex, the\n"
    "        type of an array. ``float64`` data become ``float32``.\n\n"
    "Raises:\n"
    "    ValueError: For lists of unequal lengths and elements of other "
    "types.\n\n"
    "Example:\n"
    "    >>> mx.array([[1, 2], [3, 4]])\n"
    "    array([[1, 2],\n"
    "           [3, 4]], dtype=int32)";

void bind_properties(ArrayClass& c) {
  c.def_prop_ro(
       "shape",
       [](const mx::array& a) {
         nb::object shape = nb::steal(PyTuple_New(a.ndim()));
         for (size_t i = 0; i < a.ndim(); ++i) {
           PyTuple_SET_ITEM(shape.ptr(), i, PyLong_FromLong(a.shape()[i]));
         }
         return shape;
       },
       nb::sig("def shape(self) -> tuple[int, ...]"),
       "The lengths of the axes.")
      .def_prop_ro("ndim", &mx::array::ndim, "The number of axes.")
      .def_prop_ro("size", &mx::array::size, "The number of elements.")
      .def_prop_ro(
          "itemsize", &mx::array::itemsize, "The bytes of one element.")
      .def_prop_ro("nbytes", &mx::array::nbytes, "The bytes of all elements.")
      .def_prop_ro(
          "dtype",
          &mx::array::dtype,
          nb::sig("def dtype(self) -> Dtype"),
          "The element type.")
      .def_prop_ro(
          "T",
          [](const mx::array& a) { return mx::transpose(a); },
          nb::sig("def T(self) -> array"),
          "All axes reversed.")
      .def_prop_ro(
          "real",
          [](const mx::array& a) { return mx::real(a); },
          nb::sig("def real(self) -> array"),
          "The real part.")
      .def_prop_ro(
          "imag",
          [](const mx::array& a) { return mx::imag(a); },
          nb::sig("def imag(self) -> array"),
          "The imaginary part, zeros for real types.")
      .def_prop_ro(
          "at",
          [](const mx::array& a) {
            return ArrayAt{a, {}};
          },
          nb::sig("def at(self) -> ArrayAt"),
          "Updates of elements into a new array, see `ArrayAt`.\n\n"
          "Example:\n"
          "    >>> a = mx.array([1, 2, 3])\n"
          "    >>> a.at[1].multiply(5)\n"
          "    array([1, 10, 3], dtype=int32)");
}

void bind_container(ArrayClass& c) {
  c.def(
       "__len__",
       [](const mx::array& a) {
         if (a.ndim() == 0) {
           throw nb::type_error("len() of a 0-dimensional array");
         }
         return a.shape(0);
       },
       nb::sig("def __len__(self) -> int"),
       "The length of the first axis. Raises TypeError for a 0-d array.")
      .def(
          "__iter__",
          [](const mx::array& a) {
            if (a.ndim() == 0) {
              throw nb::type_error("iteration over a 0-dimensional array");
            }
            return ArrayIterator{a};
          },
          nb::sig("def __iter__(self) -> ArrayIterator"),
          "Goes along the first axis.")
      .def(
          "__getitem__",
          [](const mx::array& a, const nb::object& index) {
            return get_item(a, index);
          },
          nb::arg().none(),
          nb::sig("def __getitem__(self, index: object, /) -> array"),
          "The elements at integers, slices, None, Ellipsis, integer arrays,\n"
          "lists, or a tuple of these, with NumPy's rules.\n\n"
          "An integer array's entries are not checked against the bounds.\n\n"
          "Raises:\n"
          "    ValueError: For masks, for more indices than axes, and for\n"
          "        indices of other types.\n\n"
          "Example:\n"
          "    >>> mx.arange(6).reshape(2, 3)[1, ::2]\n"
          "    array([3, 5], dtype=int32)")
      .def(
          "__setitem__",
          [](mx::array& a, const nb::object& index, const nb::object& value) {
            set_item(a, index, value);
          },
          nb::arg().none(),
          nb::arg(),
          nb::sig("def __setitem__(self, index: object, value: scalar | array, "
                  "/) -> None"),
          "Writes a value, broadcast and cast to the array's type, at an "
          "index\n"
          "as of `__getitem__` or where a boolean mask holds.\n\n"
          "Arrays computed from this one before keep the old content.");
}

/// Lets functions that take arrays take objects with __mlx_array__.
struct HasMlxArray {};

}  // namespace

}  // namespace mlx::python

namespace nanobind::detail {

template <>
struct type_caster<mlx::python::HasMlxArray> {
  NB_TYPE_CASTER(mlx::python::HasMlxArray, const_name("ArrayLike"))

  template <typename Flags>
  bool from_python(handle src, Flags, cleanup_list*) noexcept {
    return hasattr(src, "__mlx_array__");
  }
};

}  // namespace nanobind::detail

namespace mlx::python {

void init_array(nb::module_& m) {
  bind_array_at(m);
  bind_array_iterator(m);
  nb::class_<ArrayLike>(
      m, "ArrayLike", "Holds an object that offers ``__mlx_array__()``.")
      .def(
          "__init__",
          [](ArrayLike* self, nb::object object) {
            if (!nb::hasattr(object, "__mlx_array__")) {
              throw nb::type_error(
                  "[ArrayLike] the object has no __mlx_array__ method.");
            }
            new (self) ArrayLike{std::move(object)};
          },
          nb::arg(),
          nb::sig("def __init__(self, arg0: object, /) -> None"))
      .def("__mlx_array__", [](const ArrayLike& a) {
        return nb::object(a.object.attr("__mlx_array__")());
      });

  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
      {0, nullptr}};
  ArrayClass c(
      m,
      "array",
      nb::type_slots(slots),
      nb::is_weak_referenceable(),
#if NB_VERSION_MAJOR >= 3
      nb::pooled(),
#endif
      kArrayDoc);
  c.def(
      "__init__",
      [](mx::array* self, nb::handle val, std::optional<mx::Dtype> dtype) {
        new (self) mx::array(create_array(val, dtype));
      },
      "val"_a,
      "dtype"_a = nb::none(),
      nb::sig("def __init__(self: array, val: scalar | list | tuple | "
              "DLPackCompatible | array, dtype: Dtype | None = None) -> None"));
  bind_properties(c);
  bind_container(c);
  bind_array_conversions(c);
  bind_array_operators(c);
  bind_array_methods(c);
  bind_array_reductions(c);
  bind_array_scans(c);
  install_fast_operators(c);
  nb::implicitly_convertible<HasMlxArray, mx::array>();
}

}  // namespace mlx::python
