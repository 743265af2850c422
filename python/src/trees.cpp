// Walks over trees of Python objects.
#include "trees.h"

#include "convert.h"
#include "mlx/random.h"
#include "random_state.h"
#include "types/error.h"

namespace mlx::python {

namespace {

/// Raises RecursionError for trees that contain themselves.
class Level {
 public:
  Level() {
    if (Py_EnterRecursiveCall(" in a tree of arrays")) {
      throw nb::python_error();
    }
  }
  ~Level() { Py_LeaveRecursiveCall(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

bool is_container(nb::handle node) {
  return PyList_Check(node.ptr()) || PyTuple_Check(node.ptr()) ||
         PyDict_Check(node.ptr());
}

void collect(nb::handle node, std::vector<mx::array>& arrays) {
  if (const mx::array* a = as_array(node)) {
    arrays.push_back(*a);
  } else if (PyList_Check(node.ptr()) || PyTuple_Check(node.ptr())) {
    Level level;
    // Short lists of layers and parameters: an index is as good as an iterator.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(node.ptr()); ++i) {
      collect(PySequence_Fast_GET_ITEM(node.ptr(), i), arrays);
    }
  } else if (PyDict_Check(node.ptr())) {
    Level level;
    PyObject* key;
    PyObject* value;
    Py_ssize_t position = 0;
    while (PyDict_Next(node.ptr(), &position, &key, &value)) {
      collect(value, arrays);
    }
  } else if (nb::isinstance<RandomState>(node)) {
    arrays.push_back(mx::random::KeySequence::default_().state());
  }
}

using LeafFn = std::function<nb::object(nb::handle)>;

nb::list map_items(nb::handle sequence, const LeafFn& fn) {
  nb::list items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i) {
    // Held: fn may run code that changes a list.
    nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(sequence.ptr(), i));
    items.append(map_tree(item, fn));
  }
  return items;
}

nb::object map_dict(nb::handle node, const LeafFn& fn) {
  nb::dict mapped;
  PyObject* key;
  PyObject* value;
  Py_ssize_t position = 0;
  while (PyDict_Next(node.ptr(), &position, &key, &value)) {
    nb::object held_key = nb::borrow(key);
    nb::object held_value = nb::borrow(value);
    mapped[held_key] = map_tree(held_value, fn);
  }
  return mapped;
}

/// One object for the life of the process.
nb::handle mark() {
  static PyObject* object =
      PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return object;
}

}  // namespace

std::vector<mx::array> tree_arrays(nb::handle tree) {
  std::vector<mx::array> arrays;
  collect(tree, arrays);
  return arrays;
}

nb::object map_tree(nb::handle tree, const LeafFn& fn) {
  if (!is_container(tree)) {
    if (!nb::isinstance<RandomState>(tree)) {
      return fn(tree);
    }
    nb::list state;
    state.append(fn(nb::cast(mx::random::KeySequence::default_().state())));
    return state;
  }
  Level level;
  if (PyDict_Check(tree.ptr())) {
    return map_dict(tree, fn);
  }
  nb::list items = map_items(tree, fn);
  return PyList_Check(tree.ptr()) ? nb::object(items) : tuple_like(tree, items);
}

nb::object tuple_like(nb::handle tuple, const nb::list& items) {
  if (PyTuple_CheckExact(tuple.ptr())) {
    return nb::tuple(items);
  }
  // collections.namedtuple and typing.NamedTuple take their fields one by one.
  return nb::hasattr(tuple, "_make") ? tuple.attr("_make")(items)
                                     : tuple.type()(items);
}

FlatTree flatten_tree(nb::handle tree, OtherLeaves others, const char* op) {
  FlatTree flat;
  flat.structure = map_tree(tree, [&](nb::handle leaf) {
    if (const mx::array* a = as_array(leaf)) {
      flat.arrays.push_back(*a);
      return nb::borrow(mark());
    }
    if (others == OtherLeaves::refuse) {
      mx::invalid(
          op,
          "an object of type ",
          nb::type_name(leaf.type()).c_str(),
          " in a tree. Expected only arrays in lists, tuples and dicts.");
    }
    return nb::borrow(leaf);
  });
  return flat;
}

bool is_mark(nb::handle leaf) {
  return leaf.is(mark());
}

nb::object fill_tree(
    nb::handle structure, const std::vector<mx::array>& arrays, size_t& next) {
  return map_tree(structure, [&](nb::handle leaf) {
    return is_mark(leaf) ? nb::cast(arrays.at(next++)) : nb::borrow(leaf);
  });
}

nb::object fill_tree(
    nb::handle structure, const std::vector<mx::array>& arrays) {
  size_t next = 0;
  return fill_tree(structure, arrays, next);
}

}  // namespace mlx::python
