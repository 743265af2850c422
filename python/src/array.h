// The class array is bound in parts, each in a file of its own.
#pragma once

#include <nanobind/nanobind.h>

#include "casters.h"
#include "mlx/array.h"

namespace mlx::python {

using ArrayClass = nanobind::class_<core::array>;

void bind_array_operators(ArrayClass& c);
void bind_array_methods(ArrayClass& c);
void bind_array_conversions(ArrayClass& c);
void bind_array_reductions(ArrayClass& c);
void bind_array_scans(ArrayClass& c);
/// Called when all operators are bound.
void install_fast_operators(ArrayClass& c);

/// array.split and mx.split.
std::vector<core::array> split_array(
    const core::array& a,
    const Axes& parts,
    int axis,
    const core::StreamOrDevice& s);

}  // namespace mlx::python
