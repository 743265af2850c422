// Numbers with a name.
#include <limits>
#include <numbers>

#include "casters.h"
#include "modules.h"

namespace mlx::python {

void init_constants(nb::module_& m) {
  m.attr("e") = std::numbers::e;
  m.attr("euler_gamma") = std::numbers::egamma;
  m.attr("pi") = std::numbers::pi;
  m.attr("inf") = std::numeric_limits<double>::infinity();
  m.attr("nan") = std::numeric_limits<double>::quiet_NaN();
  m.attr("newaxis") = nb::none();
}

}  // namespace mlx::python
