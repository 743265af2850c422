// The parts that make up mlx.core. Each adds its names to the module in one
// function, called by mlx.cpp in this order.
#pragma once

#include <nanobind/nanobind.h>

namespace mlx::python {

void init_exceptions(nanobind::module_& m);
void init_dtype(nanobind::module_& m);
void init_device(nanobind::module_& m);
void init_stream(nanobind::module_& m);
void init_array(nanobind::module_& m);
void init_constants(nanobind::module_& m);
void init_memory(nanobind::module_& m);
void init_printing(nanobind::module_& m);
void init_eval(nanobind::module_& m);
void init_graph(nanobind::module_& m);
void init_conversion(nanobind::module_& m);
void init_ops_creation(nanobind::module_& m);
void init_ops_diagonal(nanobind::module_& m);
void init_ops_elementwise(nanobind::module_& m);
void init_ops_elementwise_more(nanobind::module_& m);
void init_ops_shape(nanobind::module_& m);
void init_ops_join(nanobind::module_& m);
void init_ops_indexing(nanobind::module_& m);
void init_ops_reduce(nanobind::module_& m);
void init_ops_scan(nanobind::module_& m);
void init_ops_sort(nanobind::module_& m);
void init_io(nanobind::module_& m);
void init_ops_matmul(nanobind::module_& m);
void init_ops_quantized(nanobind::module_& m);
void init_random(nanobind::module_& m);
void init_fast(nanobind::module_& m);
void init_transforms(nanobind::module_& m);
void init_vmap(nanobind::module_& m);
void init_custom_function(nanobind::module_& m);
void init_compile(nanobind::module_& m);

}  // namespace mlx::python
