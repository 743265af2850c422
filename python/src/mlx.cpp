// Entry of the module mlx.core: calls the parts in order. A part that adds a
// class comes before those whose signatures name it.
#include <nanobind/nanobind.h>

#include <cstdlib>

#include "gil.h"
#include "mlx/utils.h"
#include "mlx/version.h"
#include "modules.h"

namespace nb = nanobind;

NB_MODULE(core, m) {
  using namespace mlx::python;
  // Objects that others keep to the end are no leak of ours: what daemon
  // threads were busy with, parameters of tests that hypothesis holds. So
  // nanobind's list is for those who look for one.
  nb::set_leak_warnings(std::getenv("MLX_LEAK_WARNINGS") != nullptr);
  m.doc() = "Arrays, operations, transforms and devices.";
  m.attr("__version__") = mlx::core::version();
  // Python's spelling: True and False.
  mlx::core::get_global_formatter().capitalize_bool = true;

  init_exceptions(m);
  init_dtype(m);
  init_device(m);
  init_stream(m);
  init_array(m);
  init_constants(m);
  init_memory(m);
  init_printing(m);
  init_eval(m);
  init_graph(m);
  init_conversion(m);
  init_ops_creation(m);
  init_ops_diagonal(m);
  init_ops_elementwise(m);
  init_ops_elementwise_more(m);
  init_ops_shape(m);
  init_ops_join(m);
  init_ops_indexing(m);
  init_ops_reduce(m);
  init_ops_scan(m);
  init_ops_sort(m);
  init_io(m);
  init_ops_matmul(m);
  init_ops_quantized(m);
  init_random(m);
  init_fast(m);
  init_transforms(m);
  init_vmap(m);
  init_custom_function(m);
  init_compile(m);
  finish_work_at_exit();
}
