// Arrays from numbers and nested lists, and the choice of type for a number
// beside an array.
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "convert.h"
#include "mlx/ops/shape.h"
#include "mlx/utils.h"
#include "types/error.h"

namespace mlx::python {

namespace {

enum class Kind { none, boolean, integer, floating, complex };

Kind kind_of(PyObject* o) {
  if (PyFloat_CheckExact(o)) {
    return Kind::floating;
  }
  if (PyBool_Check(o)) {
    return Kind::boolean;
  }
  if (PyLong_Check(o)) {
    return Kind::integer;
  }
  if (PyFloat_Check(o)) {
    return Kind::floating;
  }
  return PyComplex_Check(o) ? Kind::complex : Kind::none;
}

/// 64 bits of an int, as int64 or, from 2^63 on, as uint64.
struct Integer {
  int64_t value = 0;
  bool is_unsigned = false;
};

Integer read_int(PyObject* o) {
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow == 0) {
    return {value};
  }
  uint64_t high = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    throw std::overflow_error(
        "[array] int too large: it needs more than 64 bits.");
  }
  return {static_cast<int64_t>(high), true};
}

bool fits_int32(const Integer& v) {
  return !v.is_unsigned && v.value >= std::numeric_limits<int32_t>::min() &&
         v.value <= std::numeric_limits<int32_t>::max();
}

double read_double(PyObject* o) {
  double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) {
    throw nb::python_error();
  }
  return value;
}

mx::complex64_t read_complex(PyObject* o) {
  Py_complex v = PyComplex_AsCComplex(o);
  if (v.real == -1.0 && PyErr_Occurred()) {
    throw nb::python_error();
  }
  return {static_cast<float>(v.real), static_cast<float>(v.imag)};
}

mx::array int_array(PyObject* o, std::optional<mx::Dtype> dtype) {
  if (dtype && mx::issubdtype(*dtype, mx::inexact)) {
    return mx::array(read_double(o), *dtype);
  }
  Integer v = read_int(o);
  if (v.is_unsigned) {
    return mx::array(
        static_cast<uint64_t>(v.value), dtype.value_or(mx::uint64));
  }
  return mx::array(
      v.value, dtype.value_or(fits_int32(v) ? mx::int32 : mx::int64));
}

mx::array number_array(PyObject* o, Kind kind, std::optional<mx::Dtype> dtype) {
  switch (kind) {
    case Kind::boolean:
      return mx::array(o == Py_True, dtype.value_or(mx::bool_));
    case Kind::integer:
      return int_array(o, dtype);
    case Kind::floating:
      return mx::array(read_double(o), dtype.value_or(mx::float32));
    default:
      return mx::array(read_complex(o), dtype.value_or(mx::complex64));
  }
}

bool fits(PyObject* o, const mx::iinfo& limits) {
  Integer v;
  try {
    v = read_int(o);
  } catch (const std::overflow_error&) {
    return false;
  }
  if (v.is_unsigned || v.value > 0) {
    return static_cast<uint64_t>(v.value) <= limits.max;
  }
  // Negative ints wrap beside uint64, as in arithmetic.
  return v.value >= limits.min || limits.dtype == mx::uint64;
}

void check_fits(PyObject* o, mx::Dtype dtype) {
  mx::iinfo limits(dtype);
  if (!fits(o, limits)) {
    mx::invalid(
        "convert",
        "int out of range: ",
        nb::str(nb::handle(o)).c_str(),
        " beside an array of ",
        dtype,
        ". Expected ",
        limits.min,
        " to ",
        limits.max,
        ".");
  }
}

/// The type that a number takes beside an array (weak typing).
mx::Dtype weak_dtype(PyObject* o, Kind kind, mx::Dtype beside) {
  switch (kind) {
    case Kind::boolean:
      return beside;
    case Kind::integer:
      if (beside == mx::bool_) {
        check_fits(o, mx::int32);
        return mx::int32;
      }
      if (mx::issubdtype(beside, mx::integer)) {
        check_fits(o, beside);
      }
      return beside;
    case Kind::floating:
      return mx::issubdtype(beside, mx::floating) ? beside : mx::float32;
    default:
      return mx::complex64;
  }
}

[[noreturn]] void refuse(nb::handle obj) {
  mx::invalid(
      "array",
      "type not accepted: ",
      nb::type_name(obj.type()).c_str(),
      ". Expected a number, an array, or an object with the buffer protocol, "
      "__dlpack__ or __mlx_array__.");
}

std::optional<mx::array> from_mlx_array(nb::handle obj) {
  nb::object method = nb::getattr(obj, "__mlx_array__", nb::none());
  if (method.is_none()) {
    return std::nullopt;
  }
  nb::object result = method();
  const mx::array* a = as_array(result);
  if (!a) {
    mx::invalid("array", "__mlx_array__ returned no array.");
  }
  return *a;
}

[[noreturn]] void ragged() {
  // The interface fixes this text.
  throw std::invalid_argument("Initialization encountered non-uniform length.");
}

/// Also the end of a list that contains itself.
constexpr size_t kMaxDepth = 64;

void check_depth(size_t depth) {
  if (depth > kMaxDepth) {
    mx::invalid("array", "lists nested too deep. Expected at most 64.");
  }
}

bool is_list(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o);
}

/// Lists that hold arrays: their items made into arrays and stacked, level by
/// level, since an array may stand beside a list.
mx::array stack_items(PyObject* o, size_t depth) {
  if (!is_list(o)) {
    return to_array(o);
  }
  check_depth(depth);
  std::vector<mx::array> items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(o, i));
    items.push_back(stack_items(item.ptr(), depth + 1));
    if (items.back().shape() != items.front().shape()) {
      ragged();
    }
  }
  return items.empty() ? mx::array({}, mx::float32) : mx::stack(items, 0);
}

/// The elements of nested lists in row-major order, after checking that all
/// lists of a level have the same length.
class ListReader {
 public:
  explicit ListReader(nb::handle list) : list_(list) {
    for (PyObject* o = list.ptr(); is_list(o);) {
      check_depth(shape_.size() + 1);
      Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
      shape_.push_back(mx::safe_cast(count, "array"));
      if (count == 0) {
        break;
      }
      o = PySequence_Fast_GET_ITEM(o, 0);
    }
    collect(list.ptr(), 0);
  }

  mx::array read(std::optional<mx::Dtype> dtype) const {
    if (has_arrays_) {
      mx::array stacked = stack_items(list_.ptr(), 1);
      return dtype ? mx::astype(stacked, *dtype) : stacked;
    }
    switch (kind_) {
      case Kind::none:
        return mx::array(
            static_cast<const float*>(nullptr),
            shape_,
            dtype.value_or(mx::float32));
      case Kind::boolean:
        return fill<bool>(dtype.value_or(mx::bool_), [](PyObject* o) {
          return o == Py_True;
        });
      case Kind::integer:
        return read_ints(dtype);
      case Kind::floating:
        return fill<double>(dtype.value_or(mx::float32), read_double);
      default:
        return fill<mx::complex64_t>(
            dtype.value_or(mx::complex64), read_complex);
    }
  }

 private:
  /// Stops at the first array: stack_items starts over.
  void collect(PyObject* o, size_t depth) {
    if (is_list(o)) {
      Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
      if (depth == shape_.size() || count != shape_[depth]) {
        ragged();
      }
      PyObject** items = PySequence_Fast_ITEMS(o);
      for (Py_ssize_t i = 0; i < count && !has_arrays_; ++i) {
        collect(items[i], depth + 1);
      }
      return;
    }
    Kind kind = kind_of(o);
    if (kind == Kind::none) {
      if (!as_array(o) && !nb::hasattr(o, "__mlx_array__")) {
        mx::invalid(
            "array",
            "type not accepted in a list: ",
            nb::type_name(nb::handle(o).type()).c_str(),
            ". Expected numbers, lists or arrays.");
      }
      has_arrays_ = true;
      return;
    }
    if (depth != shape_.size()) {
      ragged();
    }
    kind_ = std::max(kind_, kind);
    elements_.push_back(o);
  }

  template <typename T, typename Read>
  mx::array fill(mx::Dtype dtype, Read&& read) const {
    std::unique_ptr<T[]> values(new T[elements_.size()]);
    for (size_t i = 0; i < elements_.size(); ++i) {
      values[i] = static_cast<T>(read(elements_[i]));
    }
    return mx::array(static_cast<const T*>(values.get()), shape_, dtype);
  }

  mx::array read_ints(std::optional<mx::Dtype> dtype) const {
    if (dtype && mx::issubdtype(*dtype, mx::inexact)) {
      return fill<double>(*dtype, read_double);
    }
    bool small = true;
    bool is_unsigned = false;
    auto as_int = [&](PyObject* o) -> int64_t {
      if (PyBool_Check(o)) {
        return o == Py_True;
      }
      Integer v = read_int(o);
      small = small && fits_int32(v);
      is_unsigned = is_unsigned || v.is_unsigned;
      return v.value;
    };
    std::unique_ptr<int64_t[]> values(new int64_t[elements_.size()]);
    for (size_t i = 0; i < elements_.size(); ++i) {
      values[i] = as_int(elements_[i]);
    }
    mx::Dtype found =
        small ? mx::int32 : (is_unsigned ? mx::uint64 : mx::int64);
    if (is_unsigned) {
      return mx::array(
          reinterpret_cast<const uint64_t*>(values.get()),
          shape_,
          dtype.value_or(found));
    }
    return mx::array(
        static_cast<const int64_t*>(values.get()),
        shape_,
        dtype.value_or(found));
  }

  nb::handle list_;
  mx::Shape shape_;
  std::vector<PyObject*> elements_;
  Kind kind_ = Kind::none;
  bool has_arrays_ = false;
};

}  // namespace

mx::array create_array(nb::handle obj, std::optional<mx::Dtype> dtype) {
  if (Kind kind = kind_of(obj.ptr()); kind != Kind::none) {
    return number_array(obj.ptr(), kind, dtype);
  }
  if (PyList_Check(obj.ptr()) || PyTuple_Check(obj.ptr())) {
    return ListReader(obj).read(dtype);
  }
  if (const mx::array* a = as_array(obj)) {
    return dtype ? mx::astype(*a, *dtype) : *a;
  }
  if (auto a = from_mlx_array(obj)) {
    return dtype ? mx::astype(*a, *dtype) : *a;
  }
  if (auto a = import_data(obj, dtype)) {
    return *a;
  }
  refuse(obj);
}

mx::array to_array(nb::handle obj) {
  if (const mx::array* a = as_array(obj)) {
    return *a;
  }
  if (PyList_Check(obj.ptr()) || PyTuple_Check(obj.ptr())) {
    refuse(obj);
  }
  return create_array(obj, std::nullopt);
}

mx::array to_array(nb::handle obj, mx::Dtype beside) {
  if (const mx::array* a = as_array(obj)) {
    return *a;
  }
  if (Kind kind = kind_of(obj.ptr()); kind != Kind::none) {
    return number_array(obj.ptr(), kind, weak_dtype(obj.ptr(), kind, beside));
  }
  if (auto a = from_mlx_array(obj)) {
    return *a;
  }
  if (auto a = import_data(obj, beside)) {
    return *a;
  }
  refuse(obj);
}

std::pair<mx::array, mx::array> to_arrays(nb::handle a, nb::handle b) {
  const mx::array* x = as_array(a);
  const mx::array* y = as_array(b);
  if (x && y) {
    return {*x, *y};
  }
  if (x) {
    return {*x, to_array(b, x->dtype())};
  }
  if (y) {
    return {to_array(a, y->dtype()), *y};
  }
  bool number_a = kind_of(a.ptr()) != Kind::none;
  bool number_b = kind_of(b.ptr()) != Kind::none;
  if (number_a && !number_b) {
    mx::array second = to_array(b);
    return {to_array(a, second.dtype()), second};
  }
  mx::array first = to_array(a);
  return {first, number_a ? to_array(b) : to_array(b, first.dtype())};
}

bool is_operand(nb::handle obj) {
  return as_array(obj) || kind_of(obj.ptr()) != Kind::none ||
         nb::hasattr(obj, "__mlx_array__") || has_data_protocol(obj);
}

const mx::array* as_array(nb::handle obj) {
  return nb::isinstance<mx::array>(obj) ? nb::inst_ptr<mx::array>(obj)
                                        : nullptr;
}

}  // namespace mlx::python
