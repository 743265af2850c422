// The part of mlx.core.fast for kernels that the user has written.
#pragma once

#include <nanobind/nanobind.h>

namespace mlx::python {

void init_custom_kernels(nanobind::module_& fast);

}  // namespace mlx::python
