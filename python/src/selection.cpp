// Sorting index expressions.
#include "selection.h"

#include <algorithm>
#include <limits>

#include "convert.h"
#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Kind = IndexPart::Kind;

[[noreturn]] void refuse(nb::handle obj) {
  mx::invalid(
      "index",
      "cannot index an array with an object of type ",
      nb::type_name(obj.type()).c_str(),
      ". Expected integers, slices, None, Ellipsis, or arrays of integers or "
      "bool.");
}

IndexPart array_part(mx::array values) {
  bool accepted = values.dtype() == mx::bool_ ||
                  mx::issubdtype(values.dtype(), mx::integer);
  // The empty list counts as a list of integers.
  if (!accepted && values.size() == 0) {
    values = mx::astype(values, mx::int32);
  } else if (!accepted) {
    mx::invalid(
        "index",
        "bad type of an index array: ",
        values.dtype(),
        ". Expected integers or bool.");
  }
  IndexPart part{Kind::array};
  part.values = std::move(values);
  return part;
}

bool has_axes(nb::handle obj) {
  nb::object shape = nb::getattr(obj, "shape", nb::none());
  return nb::isinstance<nb::tuple>(shape) && nb::len(shape) > 0;
}

// No axis is longer than 32 bits tell.
int64_t read_small(nb::handle number, const char* what) {
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow || value > std::numeric_limits<int32_t>::max() ||
      value < std::numeric_limits<int32_t>::min()) {
    mx::invalid(
        "index",
        "bad ",
        what,
        ": ",
        nb::str(number).c_str(),
        ". Expected numbers of 32 bits.");
  }
  return value;
}

std::optional<int64_t> slice_bound(PyObject* o) {
  if (o == Py_None) {
    return std::nullopt;
  }
  if (!PyIndex_Check(o) || as_array(o)) {
    mx::invalid(
        "index",
        "bad part of a slice: ",
        nb::type_name(nb::handle(o).type()).c_str(),
        ". Expected integers or None.");
  }
  nb::object number = nb::steal(PyNumber_Index(o));
  if (!number.is_valid()) {
    throw nb::python_error();
  }
  return read_small(number, "part of a slice");
}

IndexPart slice_part(PyObject* object) {
  auto* slice = reinterpret_cast<PySliceObject*>(object);
  IndexPart part{Kind::slice};
  part.step = slice_bound(slice->step);
  if (part.step == 0) {
    mx::invalid("index", "the step of a slice is 0. Expected another.");
  }
  part.start = slice_bound(slice->start);
  part.stop = slice_bound(slice->stop);
  return part;
}

IndexPart read_part(nb::handle obj) {
  PyObject* o = obj.ptr();
  if (PyLong_Check(o) && !PyBool_Check(o)) {
    return {Kind::integer, read_small(obj, "index")};
  }
  if (PySlice_Check(o)) {
    return slice_part(o);
  }
  if (o == Py_None) {
    return {Kind::new_axis};
  }
  if (o == Py_Ellipsis) {
    return {Kind::ellipsis};
  }
  if (const mx::array* a = as_array(obj)) {
    return array_part(*a);
  }
  if (PyBool_Check(o) || PyList_Check(o) || PyTuple_Check(o)) {
    return array_part(create_array(obj, std::nullopt));
  }
  if (has_axes(obj)) {
    if (auto values = import_data(obj, std::nullopt)) {
      return array_part(std::move(*values));
    }
  }
  if (PyIndex_Check(o)) {
    nb::object number = nb::steal(PyNumber_Index(o));
    if (!number.is_valid()) {
      throw nb::python_error();
    }
    return read_part(number);
  }
  refuse(obj);
}

Entry range_entry(const IndexPart& slice, int axis, int64_t n) {
  int64_t step = slice.step.value_or(1);
  int64_t low = step > 0 ? 0 : -1;
  int64_t high = step > 0 ? n : n - 1;
  auto resolve = [&](const std::optional<int64_t>& bound, int64_t missing) {
    return bound ? std::clamp(*bound < 0 ? *bound + n : *bound, low, high)
                 : missing;
  };
  Entry entry{Entry::Kind::range, axis, 0, 0, 1, {}};
  entry.start = static_cast<int>(resolve(slice.start, step > 0 ? low : high));
  entry.stop = static_cast<int>(resolve(slice.stop, step > 0 ? high : low));
  entry.step = static_cast<int>(step);
  return entry;
}

Entry at_entry(int64_t at, int axis, int64_t n) {
  if (at < -n || at >= n) {
    throw std::out_of_range(mx::message(
        "index",
        "index out of range: ",
        at,
        " for axis ",
        axis,
        " of length ",
        n,
        ". Expected -length <= index < length."));
  }
  int position = static_cast<int>(at < 0 ? at + n : at);
  return {Entry::Kind::at, axis, position, position + 1, 1, {}};
}

// The numbers of a mask's true elements, in row-major order.
mx::array true_positions(const mx::array& mask) {
  mx::array flat = mx::contiguous(mask);
  flat = evaluated(flat);
  const bool* is_set = flat.data<bool>();
  std::vector<int64_t> positions;
  for (size_t i = 0; i < flat.size(); ++i) {
    if (is_set[i]) {
      positions.push_back(static_cast<int64_t>(i));
    }
  }
  bool small = flat.size() <= std::numeric_limits<int32_t>::max();
  return mx::array(
      positions.data(),
      {static_cast<mx::ShapeElem>(positions.size())},
      small ? mx::int32 : mx::int64);
}

// The indices of a mask over axes of `source`, which become one.
Entry mask_entry(const mx::array& mask, int axis, mx::array& source) {
  int ndim = static_cast<int>(mask.ndim());
  const mx::Shape& shape = source.shape();
  if (ndim == 0 ||
      !std::equal(
          mask.shape().begin(), mask.shape().end(), shape.begin() + axis)) {
    mx::invalid(
        "index",
        "a mask of shape ",
        mask.shape(),
        " does not match axes ",
        axis,
        " and following of an array of shape ",
        shape,
        ".");
  }
  if (ndim > 1) {
    source = mx::flatten(source, axis, axis + ndim - 1);
  }
  return {Entry::Kind::indices, axis, 0, 0, 1, true_positions(mask)};
}

}  // namespace

bool IndexPart::is_mask() const {
  return values && values->dtype() == mx::bool_;
}

int IndexPart::axes() const {
  if (kind == Kind::new_axis || kind == Kind::ellipsis) {
    return 0;
  }
  return is_mask() ? static_cast<int>(values->ndim()) : 1;
}

std::vector<IndexPart> index_parts(nb::handle index) {
  std::vector<IndexPart> parts;
  if (!PyTuple_Check(index.ptr())) {
    parts.push_back(read_part(index));
    return parts;
  }
  Py_ssize_t count = PyTuple_GET_SIZE(index.ptr());
  parts.reserve(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    parts.push_back(read_part(PyTuple_GET_ITEM(index.ptr(), i)));
  }
  return parts;
}

mx::ShapeElem Entry::length() const {
  int64_t span = int64_t{stop} - start;
  int64_t count = (span + step - (step > 0 ? 1 : -1)) / step;
  return static_cast<mx::ShapeElem>(std::max<int64_t>(count, 0));
}

bool Entry::is_whole(const mx::array& source) const {
  return kind == Kind::range && start == 0 && step == 1 &&
         stop == source.shape(axis);
}

mx::Shape Selection::index_shape() const {
  mx::Shape shape;
  for (const Entry& e : entries) {
    if (e.indices) {
      shape = mx::broadcast_shapes(shape, e.indices->shape());
    }
  }
  return shape;
}

bool Selection::is_side_by_side() const {
  bool begun = false;
  bool ended = false;
  for (const Entry& e : entries) {
    if (e.is_advanced()) {
      if (ended) {
        return false;
      }
      begun = true;
    } else {
      ended = begun;
    }
  }
  return true;
}

int Selection::index_position() const {
  int ranges = 0;
  if (is_side_by_side()) {
    for (const Entry& e : entries) {
      if (e.is_advanced()) {
        break;
      }
      ranges += e.kind == Entry::Kind::range;
    }
  }
  return ranges;
}

mx::Shape Selection::shape() const {
  mx::Shape shape;
  for (const Entry& e : entries) {
    if (e.kind == Entry::Kind::range) {
      shape.push_back(e.length());
    }
  }
  if (has_indices) {
    mx::Shape index = index_shape();
    shape.insert(shape.begin() + index_position(), index.begin(), index.end());
  }
  for (int axis : new_axes()) {
    shape.insert(shape.begin() + axis, 1);
  }
  return shape;
}

std::vector<int> Selection::new_axes() const {
  std::vector<int> axes;
  int axis = 0;
  bool placed = true;
  int index_ndim = 0;
  if (has_indices) {
    index_ndim = static_cast<int>(index_shape().size());
    placed = !is_side_by_side();
    axis = placed ? index_ndim : 0;
  }
  for (const Entry& e : entries) {
    if (e.kind == Entry::Kind::new_axis) {
      axes.push_back(axis++);
    } else if (e.kind == Entry::Kind::range) {
      ++axis;
    } else if (!placed) {
      axis += index_ndim;
      placed = true;
    }
  }
  return axes;
}

Selection select(const mx::array& a, const std::vector<IndexPart>& parts) {
  int ndim = static_cast<int>(a.ndim());
  int named = 0;
  int ellipses = 0;
  for (const IndexPart& part : parts) {
    named += part.axes();
    ellipses += part.kind == Kind::ellipsis;
  }
  if (ellipses > 1) {
    mx::invalid("index", "more than one ellipsis. Expected at most one.");
  }
  if (named > ndim) {
    mx::invalid(
        "index",
        "too many indices: ",
        named,
        " for an array of ",
        ndim,
        " dimensions.");
  }
  Selection found{a, {}, false};
  found.entries.reserve(parts.size() + ndim - named);
  int axis = 0;
  auto fill = [&](int count) {
    for (; count > 0; --count, ++axis) {
      mx::ShapeElem n = found.source.shape(axis);
      found.entries.push_back({Entry::Kind::range, axis, 0, n, 1, {}});
    }
  };
  for (const IndexPart& part : parts) {
    if (part.kind == Kind::ellipsis) {
      fill(ndim - named);
      continue;
    }
    if (part.kind == Kind::new_axis) {
      found.entries.push_back({Entry::Kind::new_axis, -1, 0, 0, 1, {}});
      continue;
    }
    int64_t n = part.is_mask() ? 0 : found.source.shape(axis);
    if (part.kind == Kind::integer) {
      found.entries.push_back(at_entry(part.at, axis, n));
    } else if (part.kind == Kind::slice) {
      found.entries.push_back(range_entry(part, axis, n));
    } else {
      found.has_indices = true;
      found.entries.push_back(
          part.is_mask()
              ? mask_entry(*part.values, axis, found.source)
              : Entry{Entry::Kind::indices, axis, 0, 0, 1, part.values});
    }
    ++axis;
  }
  if (ellipses == 0) {
    fill(ndim - named);
  }
  return found;
}

}  // namespace mlx::python
