// Evaluation of trees of arrays.
#include "casters.h"
#include "gil.h"
#include "mlx/transforms.h"
#include "modules.h"
#include "trees.h"

namespace mlx::python {

void init_eval(nb::module_& m) {
  m.def(
      "eval",
      [](nb::args args) {
        std::vector<mx::array> arrays = tree_arrays(args);
        WithoutGil release;
        mx::eval(std::move(arrays));
      },
      "args"_a,
      nb::sig("def eval(*args: object) -> None"),
      "Computes arrays and waits for them.\n\n"
      "Args:\n"
      "    *args (arrays or trees of arrays): Lists, tuples and dicts may be\n"
      "        nested; other objects in them are passed over.\n\n"
      "Raises:\n"
      "    RuntimeError: With the first error of the work.\n\n"
      "Example:\n"
      "    >>> a = mx.ones(3) * 2\n"
      "    >>> mx.eval(a, {\"more\": [a + 1]})");
  m.def(
      "async_eval",
      [](nb::args args) {
        std::vector<mx::array> arrays = tree_arrays(args);
        WithoutGil release;
        mx::async_eval(std::move(arrays));
      },
      "args"_a,
      nb::sig("def async_eval(*args: object) -> None"),
      "Starts to compute arrays; a later read waits.\n\n"
      "Args:\n"
      "    *args (arrays or trees of arrays): As for `eval`.\n\n"
      "Example:\n"
      "    >>> a = mx.ones(3) * 2\n"
      "    >>> mx.async_eval(a)\n"
      "    >>> a.tolist()\n"
      "    [2.0, 2.0, 2.0]");
}

}  // namespace mlx::python
