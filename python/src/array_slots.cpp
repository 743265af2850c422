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

PyObject* wrap(mx::array&& a) {
  return nb::cast(std::move(a)).release().ptr();
}

/// One slot: what was there before, and the short way to it.
template <Binary function, binaryfunc PyNumberMethods::*slot>
struct FastBinary {
  static inline binaryfunc general = nullptr;

  static void install() {
    general = std::exchange(array_type->tp_as_number->*slot, call);
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
    return general(a, b);
  }
};

}  // namespace

void install_fast_operators(ArrayClass& c) {
  array_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  FastBinary<mx::add, &PyNumberMethods::nb_add>::install();
  FastBinary<mx::subtract, &PyNumberMethods::nb_subtract>::install();
  FastBinary<mx::multiply, &PyNumberMethods::nb_multiply>::install();
  FastBinary<mx::divide, &PyNumberMethods::nb_true_divide>::install();
}

}  // namespace mlx::python
