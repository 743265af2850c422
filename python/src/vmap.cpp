// vmap of Python functions: axes are trees beside the arguments and results.
#include "transforms/vmap.h"

#include "casters.h"
#include "convert.h"
#include "modules.h"
#include "transforms.h"
#include "types/error.h"

namespace mlx::python {

namespace {

[[noreturn]] void mismatch(const char* name) {
  mx::invalid(
      "vmap",
      name,
      " does not match: other containers. Expected an int, None, or the "
      "lists, tuples and dicts of the arrays.");
}

/// Walks a tree and its axes side by side.
class AxesReader {
 public:
  AxesReader(const char* name, int extra_dims)
      : name_(name), extra_dims_(extra_dims) {}

  void read(nb::handle tree, nb::handle axes) {
    int64_t axis;
    if (axes.is_none()) {
      all(tree, std::nullopt);
    } else if (detail::read_integer(axes, axis)) {
      all(tree, axis);
    } else if (PyDict_Check(axes.ptr())) {
      read_dict(tree, axes);
    } else if (PyTuple_Check(axes.ptr()) || PyList_Check(axes.ptr())) {
      read_sequence(tree, axes);
    } else {
      mx::invalid(
          "vmap",
          name_,
          " of type ",
          nb::type_name(axes.type()).c_str(),
          ". Expected int, None or a tree of these.");
    }
  }

  std::vector<int> found;

 private:
  void read_sequence(nb::handle tree, nb::handle axes) {
    bool both = PyTuple_Check(axes.ptr()) ? PyTuple_Check(tree.ptr())
                                          : PyList_Check(tree.ptr());
    if (!both || nb::len(tree) != nb::len(axes)) {
      mismatch(name_);
    }
    for (size_t i = 0; i < nb::len(tree); ++i) {
      nb::object item = tree[i];
      read(item, nb::object(axes[i]));
    }
  }

  void read_dict(nb::handle tree, nb::handle axes) {
    if (!PyDict_Check(tree.ptr()) || nb::len(tree) != nb::len(axes)) {
      mismatch(name_);
    }
    // In the order of the arrays, not in that of the axes.
    for (auto [key, value] : nb::borrow<nb::dict>(tree)) {
      PyObject* axis = PyDict_GetItemWithError(axes.ptr(), key.ptr());
      if (!axis && PyErr_Occurred()) {
        throw nb::python_error();
      }
      if (!axis) {
        mismatch(name_);
      }
      read(value, axis);
    }
  }

  void all(nb::handle tree, std::optional<int64_t> axis) {
    for (const mx::array& a :
         flatten_tree(tree, OtherLeaves::refuse, "vmap").arrays) {
      int ndim = static_cast<int>(a.ndim()) + extra_dims_;
      Axes clamped;
      clamped.set({axis.value_or(0)});
      found.push_back(
          axis ? mx::checked_axis("vmap", clamped.values[0], ndim) : -1);
    }
  }

  const char* name_;
  int extra_dims_;
};

/// `(axis,)` may stand for the axis of a single array.
bool is_wrapped(nb::handle tree, nb::handle axes) {
  return PyTuple_Check(axes.ptr()) && PyTuple_GET_SIZE(axes.ptr()) == 1 &&
         !PyTuple_Check(tree.ptr());
}

std::vector<int> argument_axes(const nb::tuple& args, nb::handle in_axes) {
  bool bare = args.size() == 1 && !is_wrapped(args[0], in_axes);
  return bare ? tree_axes(args[0], in_axes, 0, "in_axes")
              : tree_axes(args, in_axes, 0, "in_axes");
}

nb::object call_mapped(
    const nb::object& fun,
    const nb::tuple& args,
    nb::handle in_axes,
    nb::handle out_axes) {
  TreeCall call("vmap", fun, args, nb::dict());
  std::vector<int> in = argument_axes(args, in_axes);
  std::vector<mx::array> inputs = call.take_inputs();
  auto [placeholders, outputs] = mx::detail::vmap_trace(
      [&](const std::vector<mx::array>& arrays) { return call.run(arrays); },
      inputs,
      in);
  nb::object traced = call.output(outputs);
  std::vector<int> out =
      is_wrapped(traced, out_axes)
          ? tree_axes(
                traced, PyTuple_GET_ITEM(out_axes.ptr(), 0), 1, "out_axes")
          : tree_axes(traced, out_axes, 1, "out_axes");
  return call.output(
      mx::detail::vmap_replace(inputs, placeholders, outputs, in, out));
}

/// Raises for leaves that no array can have as axis, when vmap is called.
void check_axes(nb::handle axes, const char* name) {
  map_tree(axes, [name](nb::handle leaf) {
    int64_t axis;
    if (!leaf.is_none() && !detail::read_integer(leaf, axis)) {
      mx::invalid(
          "vmap",
          name,
          " of type ",
          nb::type_name(leaf.type()).c_str(),
          ". Expected int, None or a tree of these.");
    }
    return nb::borrow(leaf);
  });
}

nb::object vmap(nb::callable fun, nb::object in_axes, nb::object out_axes) {
  check_axes(in_axes, "in_axes");
  check_axes(out_axes, "out_axes");
  return transformed(
      std::move(fun),
      [in_axes = Held(in_axes), out_axes = Held(out_axes)](
          const nb::object& f, const nb::tuple& args, const nb::dict& kwargs) {
        if (kwargs.size() > 0) {
          throw nb::type_error(
              "[vmap] keyword arguments given. Expected only positional ones.");
        }
        return call_mapped(f, args, in_axes.get(), out_axes.get());
      });
}

}  // namespace

std::vector<int> tree_axes(
    nb::handle tree, nb::handle axes, int extra_dims, const char* name) {
  AxesReader reader(name, extra_dims);
  reader.read(tree, axes);
  return std::move(reader.found);
}

void init_vmap(nb::module_& m) {
  m.def(
      "vmap",
      vmap,
      "fun"_a,
      "in_axes"_a.none() = 0,
      "out_axes"_a.none() = 0,
      nb::sig("def vmap(fun: Callable, in_axes: object = 0, out_axes: object = "
              "0) -> Callable"),
      "A function that applies fun along an axis of its arguments.\n\n"
      "Args:\n"
      "    fun (Callable): Takes and returns trees of arrays.\n"
      "    in_axes (int, None or tree): The axis that each argument loses;\n"
      "        None for arguments used whole each time. One for all, or a\n"
      "        tuple with one for each argument, in which trees stand for\n"
      "        those of trees. Default: 0.\n"
      "    out_axes (int, None or tree): The axis that each output gains; "
      "None\n"
      "        for outputs that depend on no mapped input. Default: 0.\n\n"
      "Returns:\n"
      "    Callable: Takes fun's arguments, all by position.\n\n"
      "Raises:\n"
      "    ValueError: For axes out of range, of different lengths or in "
      "other\n"
      "        containers than the arrays, and when no input is mapped.\n\n"
      "Example:\n"
      "    >>> add = mx.vmap(lambda a, b: a + b, in_axes=(0, None))\n"
      "    >>> add(mx.array([1, 2]), mx.array([10, 20]))\n"
      "    array([[11, 21],\n"
      "           [12, 22]], dtype=int32)");
}

}  // namespace mlx::python
