// Memory shared with other libraries: the buffer protocol (PEP 3118) in both
// directions, DLPack in both directions, and NumPy through them. Data that
// comes in are always copied.
#include <nanobind/ndarray.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "convert.h"
#include "mlx/ops/shape.h"
#include "mlx/transforms.h"
#include "mlx/utils.h"
#include "types/error.h"

namespace mlx::python {

namespace {

/// Types that other libraries have, two of which are narrowed by default.
enum class Source { ours, float64, complex128 };

/// Someone else's elements; strides in bytes.
struct ForeignData {
  const char* data;
  mx::Shape shape;
  mx::Strides strides;
  Source source;
  mx::Dtype dtype;
  size_t itemsize;
};

mx::ShapeElem dimension(int64_t n) {
  if (n > std::numeric_limits<mx::ShapeElem>::max()) {
    // The interface fixes this text.
    throw std::overflow_error(
        "Shape dimension " + std::to_string(n) +
        " is outside the supported range [-2147483648, 2147483647]. MLX "
        "currently uses 32-bit integers for shape dimensions.");
  }
  return static_cast<mx::ShapeElem>(n);
}

/// Row-major bytes of the elements.
std::vector<char> gather_bytes(const ForeignData& d, size_t count) {
  std::vector<char> bytes(count * d.itemsize);
  std::vector<int64_t> index(d.shape.size(), 0);
  const char* from = d.data;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + i * d.itemsize, from, d.itemsize);
    for (int axis = static_cast<int>(index.size()) - 1; axis >= 0; --axis) {
      from += d.strides[axis];
      if (++index[axis] < d.shape[axis]) {
        break;
      }
      from -= d.strides[axis] * d.shape[axis];
      index[axis] = 0;
    }
  }
  return bytes;
}

bool is_row_major(const ForeignData& d) {
  int64_t expected = static_cast<int64_t>(d.itemsize);
  for (int axis = static_cast<int>(d.shape.size()) - 1; axis >= 0; --axis) {
    if (d.shape[axis] != 1 && d.strides[axis] != expected) {
      return false;
    }
    expected *= d.shape[axis];
  }
  return true;
}

void check_strides(const ForeignData& d) {
  for (size_t axis = 0; axis < d.shape.size(); ++axis) {
    if (d.shape[axis] > 1 && d.strides[axis] < 0) {
      mx::invalid(
          "array",
          "negative stride: ",
          d.strides[axis],
          " bytes on axis ",
          axis,
          ". Expected strides of 0 or more; make a copy first.");
    }
  }
}

mx::array copy_elements(const ForeignData& d, std::optional<mx::Dtype> dtype) {
  size_t count = 1;
  for (mx::ShapeElem n : d.shape) {
    count *= n;
  }
  std::vector<char> gathered;
  const char* data = d.data;
  if (count > 0 && !is_row_major(d)) {
    gathered = gather_bytes(d, count);
    data = gathered.data();
  }
  if (d.source == Source::complex128) {
    const auto* values = reinterpret_cast<const std::complex<double>*>(data);
    std::vector<mx::complex64_t> narrowed;
    narrowed.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      narrowed.emplace_back(
          static_cast<float>(values[i].real()),
          static_cast<float>(values[i].imag()));
    }
    return mx::array(
        static_cast<const mx::complex64_t*>(narrowed.data()),
        d.shape,
        dtype.value_or(mx::complex64));
  }
  mx::Dtype narrowed = d.source == Source::float64 ? mx::float32 : d.dtype;
  return mx::detail::visit_dtype(d.dtype, [&](auto tag) {
    return mx::array(
        reinterpret_cast<const decltype(tag)*>(data),
        d.shape,
        dtype.value_or(narrowed));
  });
}

/// The elements from the first to the last in memory, behind a view that has
/// the strides; not if most of them lie between those that are wanted.
std::optional<mx::array> copy_with_strides(
    const ForeignData& d, std::optional<mx::Dtype> dtype) {
  auto itemsize = static_cast<int64_t>(d.itemsize);
  int64_t count = 1;
  int64_t span = 1;
  mx::Strides strides;
  for (size_t axis = 0; axis < d.shape.size(); ++axis) {
    if (d.strides[axis] % itemsize != 0) {
      return std::nullopt;
    }
    strides.push_back(d.strides[axis] / itemsize);
    count *= d.shape[axis];
    span += (d.shape[axis] - 1) * strides.back();
  }
  if (count == 0 || span > 2 * count) {
    return std::nullopt;
  }
  ForeignData flat = d;
  flat.shape = {mx::safe_cast(span, "array")};
  flat.strides = {itemsize};
  return mx::as_strided(copy_elements(flat, dtype), d.shape, strides, 0);
}

mx::array copy_in(
    const ForeignData& d, std::optional<mx::Dtype> dtype, Strides strides) {
  check_strides(d);
  if (strides == Strides::keep && !is_row_major(d)) {
    if (auto view = copy_with_strides(d, dtype)) {
      return *view;
    }
  }
  return copy_elements(d, dtype);
}

[[noreturn]] void refuse_type(std::string_view what, std::string_view type) {
  mx::invalid(
      "array",
      what,
      " not accepted: ",
      type,
      ". Expected bool, integers of 8 to 64 bits, floats or complex numbers in "
      "this machine's byte order.");
}

std::optional<mx::Dtype> integer_dtype(size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? mx::int8 : mx::uint8;
    case 2:
      return is_signed ? mx::int16 : mx::uint16;
    case 4:
      return is_signed ? mx::int32 : mx::uint32;
    case 8:
      return is_signed ? mx::int64 : mx::uint64;
    default:
      return std::nullopt;
  }
}

/// Sets the element type of `d` from a PEP 3118 format.
void read_format(const char* format, ForeignData& d) {
  std::string_view f = format ? format : "B";
  std::string_view type = f;
  if (!type.empty() && std::string_view("@=<|").find(type[0]) != type.npos) {
    type.remove_prefix(1);
  }
  d.source = Source::ours;
  if (type == "?") {
    d.dtype = mx::bool_;
  } else if (type == "e") {
    d.dtype = mx::float16;
  } else if (type == "f") {
    d.dtype = mx::float32;
  } else if (type == "d") {
    d.dtype = mx::float64;
    d.source = Source::float64;
  } else if (type == "Zf") {
    d.dtype = mx::complex64;
  } else if (type == "Zd") {
    d.source = Source::complex128;
  } else if (type == "bfloat16") {
    d.dtype = mx::bfloat16;
  } else if (
      type.size() == 1 && std::string_view("bBhHiIlLqQnNc").find(type[0]) !=
                              std::string_view::npos) {
    bool is_signed = std::string_view("bhilqn").find(type[0]) != type.npos;
    auto dtype = integer_dtype(d.itemsize, is_signed);
    d.dtype = *dtype;
  } else {
    refuse_type("buffer format", f);
  }
}

/// A buffer that is given back when this goes out of scope.
struct HeldBuffer {
  Py_buffer view{};
  bool held = false;

  explicit HeldBuffer(nb::handle obj) {
    held = PyObject_GetBuffer(obj.ptr(), &view, PyBUF_RECORDS_RO) == 0;
  }
  ~HeldBuffer() {
    if (held) {
      PyBuffer_Release(&view);
    }
  }
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
};

mx::array import_buffer(
    const Py_buffer& view,
    std::optional<mx::Dtype> dtype,
    Strides strides,
    bool is_bfloat16) {
  ForeignData d{
      static_cast<const char*>(view.buf),
      {},
      {},
      Source::ours,
      mx::bfloat16,
      static_cast<size_t>(view.itemsize)};
  for (int axis = 0; axis < view.ndim; ++axis) {
    d.shape.push_back(dimension(view.shape[axis]));
    d.strides.push_back(view.strides[axis]);
  }
  if (!is_bfloat16) {
    read_format(view.format, d);
  }
  return copy_in(d, dtype, strides);
}

mx::array import_dlpack(
    nb::handle obj, std::optional<mx::Dtype> dtype, Strides strides) {
  nb::ndarray<nb::ro> source;
  if (!nb::try_cast(obj, source)) {
    mx::invalid(
        "array",
        "DLPack data not readable from ",
        nb::type_name(obj.type()).c_str(),
        ". Expected __dlpack__ and __dlpack_device__.");
  }
  if (source.device_type() != nb::device::cpu::value) {
    mx::invalid(
        "array",
        "DLPack data on device type ",
        source.device_type(),
        ". Expected data on the CPU (1).");
  }
  nb::dlpack::dtype t = source.dtype();
  using Code = nb::dlpack::dtype_code;
  ForeignData d{
      static_cast<const char*>(static_cast<const void*>(source.data())),
      {},
      {},
      Source::ours,
      mx::bool_,
      t.bits / 8u};
  for (size_t axis = 0; axis < source.ndim(); ++axis) {
    d.shape.push_back(dimension(source.shape(axis)));
    d.strides.push_back(source.stride(axis) * static_cast<int64_t>(d.itemsize));
  }
  std::optional<mx::Dtype> found;
  switch (static_cast<Code>(t.code)) {
    case Code::Int:
    case Code::UInt:
      found =
          integer_dtype(d.itemsize, t.code == static_cast<uint8_t>(Code::Int));
      break;
    case Code::Float:
      found = t.bits == 16   ? std::optional(mx::float16)
              : t.bits == 32 ? std::optional(mx::float32)
              : t.bits == 64 ? std::optional(mx::float64)
                             : std::nullopt;
      d.source = t.bits == 64 ? Source::float64 : Source::ours;
      break;
    case Code::Bfloat:
      found = mx::bfloat16;
      break;
    case Code::Complex:
      found = mx::complex64;
      d.source = t.bits == 128 ? Source::complex128 : Source::ours;
      break;
    case Code::Bool:
      found = mx::bool_;
      break;
    default:
      break;
  }
  if (!found || t.lanes != 1) {
    refuse_type(
        "DLPack type",
        "code " + std::to_string(t.code) + ", " + std::to_string(t.bits) +
            " bits");
  }
  d.dtype = *found;
  return copy_in(d, dtype, strides);
}

/// NumPy has no bfloat16; ml_dtypes adds one that no protocol exports.
bool is_bfloat16(nb::handle obj) {
  nb::object dtype = nb::getattr(obj, "dtype", nb::none());
  return !dtype.is_none() && nb::hasattr(obj, "view") &&
         std::strcmp(nb::str(dtype).c_str(), "bfloat16") == 0;
}

// Formats of PEP 3118 in the order of Dtype::Val.
constexpr const char* kFormats[] = {
    "?",
    "B",
    "H",
    "I",
    "Q",
    "b",
    "h",
    "i",
    "q",
    "e",
    "f",
    "d",
    "bfloat16",
    "Zf"};

/// What a Py_buffer of ours points to; keeps the memory alive.
struct ExportedBuffer {
  mx::array array;
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

}  // namespace

std::optional<mx::array> import_data(
    nb::handle obj, std::optional<mx::Dtype> dtype, Strides strides) {
  if (is_bfloat16(obj)) {
    nb::object bits = obj.attr("view")("uint16");
    HeldBuffer buffer(bits);
    if (buffer.held) {
      return import_buffer(buffer.view, dtype, strides, true);
    }
    PyErr_Clear();
  }
  if (PyObject_CheckBuffer(obj.ptr())) {
    HeldBuffer buffer(obj);
    if (buffer.held) {
      return import_buffer(buffer.view, dtype, strides, false);
    }
    std::string reason = nb::python_error().what();
    if (!nb::hasattr(obj, "__dlpack__")) {
      mx::invalid("array", "buffer not readable: ", reason);
    }
  }
  if (nb::hasattr(obj, "__dlpack__")) {
    return import_dlpack(obj, dtype, strides);
  }
  return std::nullopt;
}

bool has_data_protocol(nb::handle obj) {
  return PyObject_CheckBuffer(obj.ptr()) || nb::hasattr(obj, "__dlpack__");
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  std::unique_ptr<ExportedBuffer> exported;
  try {
    const mx::array& a = *nb::inst_ptr<mx::array>(nb::handle(self));
    exported.reset(new ExportedBuffer{readable(a), {}, {}});
  } catch (nb::python_error& e) {
    e.restore();
    return -1;
  } catch (const std::invalid_argument& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
    return -1;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return -1;
  }
  mx::array& a = exported->array;
  bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  bool row_major = a.flags().row_contiguous;
  bool wants_row = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  bool wants_column = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
  if ((!row_major && (!wants_strides || wants_row)) ||
      (wants_column && !a.flags().col_contiguous)) {
    PyErr_SetString(
        PyExc_BufferError,
        "[array] memory layout: the array is a strided view. Expected a caller "
        "that takes strides; mlx.core.contiguous makes a row-major copy.");
    return -1;
  }
  for (size_t axis = 0; axis < a.ndim(); ++axis) {
    exported->shape.push_back(a.shape()[axis]);
    exported->strides.push_back(
        a.strides()[axis] * static_cast<Py_ssize_t>(a.itemsize()));
  }
  view->buf = a.data<char>();
  view->len = static_cast<Py_ssize_t>(a.nbytes());
  view->itemsize = static_cast<Py_ssize_t>(a.itemsize());
  view->readonly = 0;
  view->ndim = static_cast<int>(a.ndim());
  view->format =
      (flags & PyBUF_FORMAT) == PyBUF_FORMAT
          ? const_cast<char*>(kFormats[static_cast<int>(a.dtype().val())])
          : nullptr;
  view->shape =
      (flags & PyBUF_ND) == PyBUF_ND ? exported->shape.data() : nullptr;
  view->strides = wants_strides ? exported->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported.release();
  view->obj = Py_NewRef(self);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<ExportedBuffer*>(view->internal);
}

nb::object to_numpy(const mx::array& a) {
  if (a.dtype() == mx::bfloat16) {
    throw nb::type_error(
        "[array] NumPy has no bfloat16. Cast to float32 first.");
  }
  return nb::module_::import_("numpy").attr("asarray")(
      nb::steal(PyMemoryView_FromObject(nb::cast(a).ptr())));
}

nb::object to_dlpack(const mx::array& x) {
  mx::array a = readable(x);
  nb::dlpack::dtype type{0, static_cast<uint8_t>(a.itemsize() * 8), 1};
  using Code = nb::dlpack::dtype_code;
  Code code = Code::Bool;
  switch (mx::kindof(a.dtype())) {
    case mx::Dtype::Kind::b:
      break;
    case mx::Dtype::Kind::u:
      code = Code::UInt;
      break;
    case mx::Dtype::Kind::i:
      code = Code::Int;
      break;
    case mx::Dtype::Kind::f:
      code = Code::Float;
      break;
    case mx::Dtype::Kind::V:
      code = Code::Bfloat;
      break;
    case mx::Dtype::Kind::c:
      code = Code::Complex;
      break;
  }
  type.code = static_cast<uint8_t>(code);
  auto* held = new mx::array(a);
  nb::capsule owner(
      held, [](void* p) noexcept { delete static_cast<mx::array*>(p); });
  std::vector<size_t> shape(a.shape().begin(), a.shape().end());
  std::vector<int64_t> strides(a.strides().begin(), a.strides().end());
  nb::ndarray<> data(
      held->data<char>(),
      shape.size(),
      shape.data(),
      owner,
      strides.data(),
      type,
      nb::device::cpu::value,
      0);
  return nb::cast(data);
}

}  // namespace mlx::python
