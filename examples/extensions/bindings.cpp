#include <nanobind/nanobind.h>
#include <nanobind/stl/variant.h>

#include "axpby/axpby.h"

namespace nb = nanobind;
using namespace nb::literals;

// mlx.core must be imported before: it holds the classes array and Stream.
NB_MODULE(_ext, m) {
  m.doc() = "A sample extension of MLX.";
  m.def(
      "axpby",
      &my_ext::axpby,
      "x"_a,
      "y"_a,
      "alpha"_a,
      "beta"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      R"(
        ``alpha * x + beta * y`` in one pass over memory.

        Args:
            x (array): Broadcasts with y.
            y (array): Broadcasts with x.
            alpha (float): What x is multiplied by.
            beta (float): What y is multiplied by.
            stream (Stream or Device, optional): Where to compute.

        Returns:
            array: The promoted type of x and y, at least float32.
      )");
  m.def(
      "simple_axpby",
      &my_ext::simple_axpby,
      "x"_a,
      "y"_a,
      "alpha"_a,
      "beta"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      "The same from two multiplications and an addition.");
}
