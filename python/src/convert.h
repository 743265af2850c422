// Between Python objects and arrays: numbers, nested lists, NumPy arrays,
// buffers, DLPack objects and objects with __mlx_array__.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include "mlx/array.h"

namespace mlx::python {

namespace nb = nanobind;
namespace mx = mlx::core;

// ---- into arrays ---------------------------------------------------------

/// What mx.array(obj, dtype) makes, also of lists. Raises
/// std::invalid_argument for what no array can be made of.
mx::array create_array(nb::handle obj, std::optional<mx::Dtype> dtype);

/// An operand of a function: an array, a number, a NumPy array, a DLPack
/// object, an object with __mlx_array__; not a list.
mx::array to_array(nb::handle obj);
/// The same beside an array of type `beside`: numbers take its type where
/// their kind allows it (an int any type, a float floating types), NumPy and
/// DLPack data are converted to it. Raises std::invalid_argument for an int
/// that does not fit.
mx::array to_array(nb::handle obj, mx::Dtype beside);
/// Two operands; one that is a number takes the type of the other.
std::pair<mx::array, mx::array> to_arrays(nb::handle a, nb::handle b);

/// Whether to_array takes the object.
bool is_operand(nb::handle obj);
/// The array inside a Python array object, or null.
const mx::array* as_array(nb::handle obj);

/// What becomes of the strides of data that are not row-major.
enum class Strides { drop, keep };
/// Data of an object with the buffer protocol or DLPack on the CPU; nothing
/// if it has neither. Raises std::invalid_argument for types and layouts that
/// arrays do not have.
std::optional<mx::array> import_data(
    nb::handle obj,
    std::optional<mx::Dtype> dtype,
    Strides strides = Strides::drop);
/// Whether import_data would find a protocol.
bool has_data_protocol(nb::handle obj);

// ---- out of arrays -------------------------------------------------------

/// The array, computed. Other Python threads run meanwhile, and may assign to
/// the object that `a` lies in: go on with what is returned.
mx::array evaluated(const mx::array& a);

/// The same, to be read here as a whole: a part of a block that is on a device
/// becomes a block of its own first, so that only this part is copied.
mx::array readable(const mx::array& a);
/// The only element as bool, int, float or complex.
nb::object to_scalar(const mx::array& a);
/// Nested lists, or the scalar of a 0-d array.
nb::object to_list(const mx::array& a);
/// A NumPy array that shares the memory. Raises TypeError for bfloat16.
nb::object to_numpy(const mx::array& a);
/// A DLPack capsule.
nb::object to_dlpack(const mx::array& a);

/// The buffer protocol of the class array.
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);

}  // namespace mlx::python
