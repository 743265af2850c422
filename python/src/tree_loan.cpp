// Putting tracers into the caller's containers and taking them out again.
#include "tree_loan.h"

#include "convert.h"
#include "mlx/random.h"
#include "random_state.h"
#include "trees.h"

namespace mlx::python {

nb::object TreeLoan::next_tracer(nb::handle array) {
  nb::object tracer = nb::cast(tracers_.at(next_++));
  PyObject* lent_before = original(array.ptr());
  swapped_.emplace(
      tracer.ptr(),
      Swapped{tracer, nb::borrow(lent_before ? lent_before : array.ptr())});
  return tracer;
}

nb::object TreeLoan::lend(nb::handle tree) {
  PyObject* o = tree.ptr();
  if (as_array(tree)) {
    return next_tracer(tree);
  }
  if (PyTuple_Check(o)) {
    return lend_tuple(tree);
  }
  bool is_dict = PyDict_Check(o);
  if (!is_dict && !PyList_Check(o)) {
    return lend_leaf(tree);
  }
  bool is_new = containers_.emplace(o, nb::borrow(tree)).second;
  if (!is_new) {
    return map_tree(tree, [&](nb::handle leaf) { return lend_leaf(leaf); });
  }
  return is_dict ? lend_dict(tree) : lend_list(tree);
}

nb::object TreeLoan::lend_leaf(nb::handle leaf) {
  if (as_array(leaf)) {
    return next_tracer(leaf);
  }
  if (!nb::isinstance<RandomState>(leaf)) {
    return nb::borrow(leaf);
  }
  if (!captured_) {
    return map_tree(leaf, [&](nb::handle key) { return next_tracer(key); });
  }
  auto& keys = mx::random::KeySequence::default_();
  const mx::array& tracer = tracers_.at(next_++);
  if (!random_state_) {
    random_state_ = keys.state();
    keys.set_state(tracer);
  }
  return nb::borrow(leaf);
}

void TreeLoan::lend_captured(nb::handle tree) {
  captured_ = true;
  lend(tree);
  captured_ = false;
}

nb::object TreeLoan::lend_list(nb::handle list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.ptr()); ++i) {
    nb::object item = nb::borrow(PyList_GET_ITEM(list.ptr(), i));
    PyList_SetItem(list.ptr(), i, lend(item).release().ptr());
  }
  return nb::borrow(list);
}

nb::object TreeLoan::lend_dict(nb::handle dict) {
  PyObject* key;
  PyObject* value;
  Py_ssize_t position = 0;
  // Other values for keys that stay are allowed within PyDict_Next.
  while (PyDict_Next(dict.ptr(), &position, &key, &value)) {
    nb::object held_key = nb::borrow(key);
    nb::object held_value = nb::borrow(value);
    nb::object lent = lend(held_value);
    if (PyDict_SetItem(dict.ptr(), held_key.ptr(), lent.ptr()) != 0) {
      throw nb::python_error();
    }
  }
  return nb::borrow(dict);
}

nb::object TreeLoan::lend_tuple(nb::handle tuple) {
  nb::list items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.ptr()); ++i) {
    items.append(lend(PyTuple_GET_ITEM(tuple.ptr(), i)));
  }
  nb::object lent = tuple_like(tuple, items);
  swapped_.emplace(lent.ptr(), Swapped{lent, nb::borrow(tuple)});
  return lent;
}

PyObject* TreeLoan::original(PyObject* value) const {
  auto it = swapped_.find(value);
  return it == swapped_.end() ? nullptr : it->second.original.ptr();
}

// What the function has put in other places of the containers is found too.
TreeLoan::~TreeLoan() {
  if (random_state_) {
    mx::random::KeySequence::default_().set_state(*random_state_);
  }
  for (auto& [container, held] : containers_) {
    if (PyList_Check(container)) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(container); ++i) {
        if (PyObject* array = original(PyList_GET_ITEM(container, i))) {
          PyList_SetItem(container, i, Py_NewRef(array));
        }
      }
      continue;
    }
    PyObject* key;
    PyObject* value;
    Py_ssize_t position = 0;
    while (PyDict_Next(container, &position, &key, &value)) {
      if (PyObject* array = original(value)) {
        PyDict_SetItem(container, key, array);
      }
    }
  }
}

}  // namespace mlx::python
