// Reading of the arguments that casters.h names.
#include "casters.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mlx::python {

std::vector<int> Axes::of(int ndim) const {
  if (!none()) {
    return values;
  }
  std::vector<int> all(ndim);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void Axes::set(const std::vector<int64_t>& axes) {
  constexpr int64_t kLow = std::numeric_limits<int>::min();
  constexpr int64_t kHigh = std::numeric_limits<int>::max();
  values.clear();
  for (int64_t axis : axes) {
    values.push_back(static_cast<int>(std::clamp(axis, kLow, kHigh)));
  }
}

mx::Shape Lengths::shape(const char* op) const {
  mx::Shape out;
  for (int64_t v : values) {
    out.push_back(mx::safe_cast(v, op));
  }
  return out;
}

namespace detail {

bool read_integer(nb::handle obj, int64_t& out) noexcept {
  PyObject* o = obj.ptr();
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow == 0;
  }
  if (PyBool_Check(o) || PyFloat_Check(o) || !PyIndex_Check(o)) {
    return false;
  }
  PyObject* index = PyNumber_Index(o);
  if (!index) {
    PyErr_Clear();
    return false;
  }
  int overflow = 0;
  out = PyLong_AsLongLongAndOverflow(index, &overflow);
  Py_DECREF(index);
  return overflow == 0;
}

bool read_integers(nb::handle obj, std::vector<int64_t>& out) noexcept {
  PyObject* o = obj.ptr();
  if (PyUnicode_Check(o) || PyBytes_Check(o)) {
    return false;
  }
  PyObject* items = PySequence_Fast(o, "");
  if (!items) {
    PyErr_Clear();
    return false;
  }
  Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
  out.resize(count);
  bool good = true;
  for (Py_ssize_t i = 0; good && i < count; ++i) {
    good = read_integer(PySequence_Fast_GET_ITEM(items, i), out[i]);
  }
  Py_DECREF(items);
  return good;
}

bool read_stream(nb::handle obj, mx::StreamOrDevice& out) noexcept {
  if (mx::ThreadLocalStream * local;
      nb::try_cast<mx::ThreadLocalStream*>(obj, local, false)) {
    out = *local;
  } else if (mx::Stream * stream;
             nb::try_cast<mx::Stream*>(obj, stream, false)) {
    out = *stream;
  } else if (mx::Device * device;
             nb::try_cast<mx::Device*>(obj, device, false)) {
    out = *device;
  } else if (mx::Device::DeviceType type;
             nb::try_cast<mx::Device::DeviceType>(obj, type, false)) {
    out = type;
  } else {
    return false;
  }
  return true;
}

}  // namespace detail

}  // namespace mlx::python
