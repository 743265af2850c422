// A short way for the commonest operators. Python reaches `a + b` through the
// type's slot, a look-up of __add__, argument parsing and casts, which take
// longer than building the node. The slots set here handle exact arrays, ints
// and floats directly and leave everything else, errors too, to that way.
#include "array.h"
#include "convert.h"
#include "mlx/ops.h"

namespace mlx::python {

namespace {

using Binary =
    mx::array (*)(const mx::array&, const mx::array&, mx::StreamOrDevice);

PyTypeObject* array_type = nullptr;

bool is_exact_array(PyObject* o) {
  return Py_TYPE(o) == array_type && nb::inst_ready(nb::handle(o));
}

const mx::array& array_in(PyObject* o) {
  return *nb::inst_ptr<mx::array>(nb::handle(o));
}

bool is_plain_number(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o);
}

// As nb::cast, which first looks whether there is an object for this address.
PyObject* wrap(mx::array&& a) {
  nb::object made =
      nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(array_type)));
  new (nb::inst_ptr<mx::array>(made)) mx::array(std::move(a));
  nb::inst_mark_ready(made);
  return made.release().ptr();
}

// What Python itself does with `a op b`. (Its own slot function cannot be
// called: it looks whether it still stands in the type, and gives up if not.)
PyObject* call_methods(
    PyObject* a, PyObject* b, const char* plain, const char* reflected) {
  if (PyObject_TypeCheck(a, array_type)) {
    PyObject* result = PyObject_CallMethod(a, plain, "O", b);
    if (result != Py_NotImplemented) {
      return result;
    }
    Py_DECREF(result);
  }
  if (PyObject_TypeCheck(b, array_type)) {
    return PyObject_CallMethod(b, reflected, "O", a);
  }
  Py_RETURN_NOTIMPLEMENTED;
}

/// One slot: the short way, and the names of the methods for the long one.
template <Binary function, binaryfunc PyNumberMethods::*slot>
struct FastBinary {
  static inline const char* plain = nullptr;
  static inline const char* reflected = nullptr;

  static void install(const char* plain_name, const char* reflected_name) {
    plain = plain_name;
    reflected = reflected_name;
    array_type->tp_as_number->*slot = call;
  }

  static PyObject* call(PyObject* a, PyObject* b) {
    try {
      if (is_exact_array(a)) {
        const mx::array& x = array_in(a);
        if (is_exact_array(b)) {
          return wrap(function(x, array_in(b), {}));
        }
        if (is_plain_number(b)) {
          return wrap(function(x, to_array(b, x.dtype()), {}));
        }
      } else if (is_exact_array(b) && is_plain_number(a)) {
        const mx::array& y = array_in(b);
        return wrap(function(to_array(a, y.dtype()), y, {}));
      }
    } catch (...) {
      // The general way meets the same error and turns it into Python's.
      PyErr_Clear();
    }
    return call_methods(a, b, plain, reflected);
  }
};

}  // namespace

void install_fast_operators(ArrayClass& c) {
  array_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  FastBinary<mx::add, &PyNumberMethods::nb_add>::install("__add__", "__radd__");
  FastBinary<mx::subtract, &PyNumberMethods::nb_subtract>::install(
      "__sub__", "__rsub__");
  FastBinary<mx::multiply, &PyNumberMethods::nb_multiply>::install(
      "__mul__", "__rmul__");
  FastBinary<mx::divide, &PyNumberMethods::nb_true_divide>::install(
      "__truediv__", "__rtruediv__");
}

}  // namespace mlx::python
