// Scalars and nested lists from arrays; waiting without holding the
// interpreter.
#include "backend/buffer.h"
#include "convert.h"
#include "gil.h"
#include "mlx/ops/shape.h"
#include "types/error.h"

namespace mlx::python {

namespace {

template <typename T>
PyObject* python_number(const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    return Py_NewRef(v ? Py_True : Py_False);
  } else if constexpr (std::is_same_v<T, mx::complex64_t>) {
    return PyComplex_FromDoubles(v.real(), v.imag());
  } else if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? PyLong_FromLongLong(v)
                               : PyLong_FromUnsignedLongLong(v);
  } else {
    return PyFloat_FromDouble(static_cast<double>(v));
  }
}

template <typename T>
nb::object nested_list(const mx::array& a, const T* data, size_t axis) {
  if (axis == a.ndim()) {
    return nb::steal(python_number(*data));
  }
  Py_ssize_t count = a.shape()[axis];
  nb::object list = nb::steal(PyList_New(count));
  if (!list.is_valid()) {
    throw nb::python_error();
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyList_SET_ITEM(
        list.ptr(),
        i,
        nested_list(a, data + i * a.strides()[axis], axis + 1).release().ptr());
  }
  return list;
}

}  // namespace

mx::array evaluated(const mx::array& a) {
  mx::array held = a;
  if (held.status() != mx::array::available) {
    WithoutGil release;
    held.eval();
  }
  return held;
}

mx::array readable(const mx::array& a) {
  mx::array held = evaluated(a);
  constexpr size_t kSlack = 1 << 16;
  bool is_far = mx::record_of(held.buffer())->host == nullptr;
  if (is_far && held.buffer_size() > 2 * held.nbytes() + kSlack) {
    WithoutGil release;
    held = mx::contiguous(held, false, mx::Device::gpu);
    held.eval();
  }
  return held;
}

nb::object to_scalar(const mx::array& x) {
  if (x.size() != 1) {
    mx::invalid(
        "convert",
        "not a scalar: an array of shape ",
        x.shape(),
        ". Expected exactly one element.");
  }
  mx::array a = evaluated(x);
  return mx::detail::visit_dtype(a.dtype(), [&](auto tag) {
    return nb::object(nb::steal(python_number(a.item<decltype(tag)>())));
  });
}

nb::object to_list(const mx::array& x) {
  mx::array a = readable(x);
  return mx::detail::visit_dtype(a.dtype(), [&](auto tag) {
    return nested_list(a, a.data<decltype(tag)>(), 0);
  });
}

}  // namespace mlx::python
