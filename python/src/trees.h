// Trees of Python objects: lists, tuples and dicts, nested; anything else is
// a leaf.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "mlx/array.h"

namespace mlx::python {

/// The arrays among the leaves, in order; other leaves are passed over.
std::vector<core::array> tree_arrays(nanobind::handle tree);

}  // namespace mlx::python
