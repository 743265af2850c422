// Reading and writing elements through Python's index expressions: integers,
// slices, None, Ellipsis, arrays, lists and tuples of these.
#pragma once

#include <nanobind/nanobind.h>

#include "mlx/array.h"

namespace mlx::python {

/// What a.at[index].<name>(value) does to the elements at the index; repeated
/// indices all count.
enum class AtUpdate { add, subtract, multiply, divide, maximum, minimum };

/// a[index].
core::array get_item(const core::array& a, const nanobind::object& index);

/// a[index] = value: the handle `a` then means the new content.
void set_item(
    core::array& a,
    const nanobind::object& index,
    const nanobind::object& value);

/// A new array, `a` with its elements at the index updated.
core::array updated_at(
    const core::array& a,
    const nanobind::object& index,
    const nanobind::object& value,
    AtUpdate update);

}  // namespace mlx::python
