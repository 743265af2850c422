// mx.random.state: the calling thread's key, seen as a list of one array, so
// that it can be saved, restored and given to transforms.
#pragma once

#include <nanobind/nanobind.h>

namespace mlx::python {

/// Has no data: every access goes to the thread that makes it.
struct RandomState {};

void bind_random_state(nanobind::module_& m);

}  // namespace mlx::python
