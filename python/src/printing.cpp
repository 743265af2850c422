// How arrays print.
#include "casters.h"
#include "mlx/utils.h"
#include "modules.h"

namespace mlx::python {

namespace {

/// The context manager behind mx.printoptions.
struct PrintScope {
  mx::PrintOptions options;
  mx::PrintOptions before;
};

mx::PrintOptions current() {
  return mx::get_global_formatter().format_options;
}

constexpr const char* kPrecisionDoc =
    "Args:\n"
    "    precision (int): Digits after the point; -1 for up to six\n"
    "        significant digits.\n\n";

}  // namespace

void init_printing(nb::module_& m) {
  nb::class_<mx::PrintOptions>(m, "PrintOptions", "How arrays print.")
      .def(
          "__init__",
          [](mx::PrintOptions* self, int precision) {
            new (self) mx::PrintOptions{precision};
          },
          "precision"_a = -1)
      .def_rw(
          "precision",
          &mx::PrintOptions::precision,
          "Digits after the point; -1 for up to six significant digits.");
  nb::class_<PrintScope>(
      m, "_PrintOptionsContext", "Print options within a ``with`` block.")
      .def(
          "__enter__",
          [](PrintScope& scope) {
            scope.before = current();
            mx::set_printoptions(scope.options);
          })
      .def(
          "__exit__",
          [](PrintScope& scope, nb::args) {
            mx::set_printoptions(scope.before);
          },
          "args"_a);
  m.def(
      "set_printoptions",
      [](int precision) { mx::set_printoptions({precision}); },
      "precision"_a = -1,
      (std::string("Sets how arrays print.\n\n") + kPrecisionDoc +
       "Example:\n"
       "    >>> mx.set_printoptions(precision=2)\n"
       "    >>> mx.array(3.14159)\n"
       "    array(3.14, dtype=float32)\n"
       "    >>> mx.set_printoptions()")
          .c_str());
  m.def("get_printoptions", current, "How arrays print now.");
  m.def(
      "printoptions",
      [](int precision) {
        return PrintScope{{precision}, {}};
      },
      "precision"_a = -1,
      (std::string("A ``with`` block in which arrays print otherwise.\n\n") +
       kPrecisionDoc +
       "Example:\n"
       "    >>> with mx.printoptions(precision=1):\n"
       "    ...     print(mx.array(2.718))\n"
       "    array(2.7, dtype=float32)")
          .c_str());
}

}  // namespace mlx::python
