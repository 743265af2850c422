// C++ exceptions in Python. nanobind turns std::invalid_argument into
// ValueError, std::out_of_range into IndexError, std::overflow_error into
// OverflowError, std::bad_alloc into MemoryError and others into RuntimeError.
#include <nanobind/nanobind.h>

#include "mlx/error.h"
#include "modules.h"

namespace mlx::python {

namespace nb = nanobind;

void init_exceptions(nb::module_& m) {
  // One class for both C++ classes, so that programs written for either
  // documented Python class work.
  nb::object bases = nb::make_tuple(
      nb::borrow(PyExc_ValueError), nb::borrow(PyExc_IndexError));
  nb::object type = nb::steal(PyErr_NewExceptionWithDoc(
      "mlx.core.AxisError", "An axis out of range.", bases.ptr(), nullptr));
  m.attr("AxisError") = type;
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* payload) {
        try {
          std::rethrow_exception(p);
        } catch (const core::AxisError& e) {
          PyErr_SetString(static_cast<PyObject*>(payload), e.what());
        } catch (const core::AxisRangeError& e) {
          PyErr_SetString(static_cast<PyObject*>(payload), e.what());
        }
      },
      // Kept for the life of the process.
      type.release().ptr());
}

}  // namespace mlx::python
