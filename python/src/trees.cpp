// Walks over trees of Python objects.
#include "trees.h"

#include "convert.h"

namespace mlx::python {

namespace {

void collect(nb::handle node, std::vector<mx::array>& arrays) {
  if (const mx::array* a = as_array(node)) {
    arrays.push_back(*a);
  } else if (PyList_Check(node.ptr()) || PyTuple_Check(node.ptr())) {
    // Short lists of layers and parameters: an index is as good as an iterator.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(node.ptr()); ++i) {
      collect(PySequence_Fast_GET_ITEM(node.ptr(), i), arrays);
    }
  } else if (PyDict_Check(node.ptr())) {
    PyObject* key;
    PyObject* value;
    Py_ssize_t position = 0;
    while (PyDict_Next(node.ptr(), &position, &key, &value)) {
      collect(value, arrays);
    }
  }
}

}  // namespace

std::vector<mx::array> tree_arrays(nb::handle tree) {
  std::vector<mx::array> arrays;
  collect(tree, arrays);
  return arrays;
}

}  // namespace mlx::python
