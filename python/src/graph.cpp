// Graphs as text.
#include <fstream>
#include <sstream>

#include "casters.h"
#include "file_objects.h"
#include "mlx/graph_utils.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

mx::array as_array(nb::handle obj) {
  mx::array a(0);
  if (!nb::try_cast(obj, a)) {
    mx::invalid(
        "export_to_dot",
        "no array: ",
        nb::type_name(obj.type()).c_str(),
        ". Expected arrays.");
  }
  return a;
}

void write_text(nb::handle file, const std::string& text) {
  if (auto path = as_path(file)) {
    std::ofstream out(*path);
    out << text;
    if (!out.flush()) {
      throw std::runtime_error(
          "[export_to_dot] the file cannot be written: " + *path + ".");
    }
    return;
  }
  if (!nb::hasattr(file, "write")) {
    mx::invalid(
        "export_to_dot",
        "no file: ",
        nb::type_name(file.type()).c_str(),
        ". Expected a path or an object with the method write.");
  }
  file.attr("write")(text);
}

}  // namespace

void init_graph(nb::module_& m) {
  m.def(
      "export_to_dot",
      [](nb::object file, nb::args args, nb::kwargs kwargs) {
        mx::NodeNamer namer;
        std::vector<mx::array> outputs;
        for (nb::handle arg : args) {
          outputs.push_back(as_array(arg));
        }
        for (auto [name, value] : kwargs) {
          outputs.push_back(as_array(value));
          namer.set_name(outputs.back(), nb::cast<std::string>(name));
        }
        std::ostringstream text;
        mx::export_to_dot(text, std::move(namer), outputs);
        write_text(file, text.str());
      },
      "file"_a,
      "args"_a,
      "kwargs"_a,
      nb::sig("def export_to_dot(file: object, *args, **kwargs) -> None"),
      "Writes the graph behind arrays that are not evaluated, in DOT.\n\n"
      "Args:\n"
      "    file (str, PathLike or text file): Where to.\n"
      "    *args (array): The results whose graph is written.\n"
      "    **kwargs (array): More of them, or inputs, that go by these "
      "names.\n\n"
      "Raises:\n"
      "    RuntimeError: If the file cannot be written.\n\n"
      "Example:\n"
      "    >>> import io\n"
      "    >>> x = mx.array([1.0, 2.0])\n"
      "    >>> file = io.StringIO()\n"
      "    >>> mx.export_to_dot(file, y=mx.exp(x), x=x)\n"
      "    >>> \"Exp\" in file.getvalue()\n"
      "    True");
}

}  // namespace mlx::python
