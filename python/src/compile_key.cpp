// Keys of traces. Each part begins with a tag and has a length of its own, so
// that different arguments never give the same bytes.
#include "compile_key.h"

#include "convert.h"
#include "mlx/random.h"
#include "random_state.h"
#include "transforms/compile/cache.h"
#include "trees.h"
#include "types/error.h"

namespace mlx::python {

using mx::detail::add_bytes;

CompileKey::CompileKey(bool shapeless) : shapeless_(shapeless) {
  mx::detail::add_surroundings(bytes_, shapeless);
}

void CompileKey::add_array(const mx::array& a) {
  add_tag('A');
  mx::detail::add_array(bytes_, a, shapeless_);
  arrays_.push_back(a);
}

void CompileKey::add_text(const char* text, size_t size) {
  add_bytes(bytes_, size);
  bytes_.append(text, size);
}

bool CompileKey::add_constant(nb::handle leaf) {
  PyObject* o = leaf.ptr();
  if (leaf.is_none()) {
    add_tag('N');
  } else if (PyBool_Check(o)) {
    add_tag(o == Py_True ? '1' : '0');
  } else if (PyLong_Check(o)) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    add_tag(overflow == 0 ? 'I' : 'J');
    if (overflow == 0) {
      add_bytes(bytes_, value);
    } else {
      nb::str digits(leaf);
      add_text(digits.c_str(), nb::len(digits));
    }
  } else if (PyFloat_Check(o)) {
    add_tag('F');
    add_bytes(bytes_, PyFloat_AS_DOUBLE(o));
  } else if (PyUnicode_Check(o)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) {
      throw nb::python_error();
    }
    add_tag('S');
    add_text(text, static_cast<size_t>(size));
  } else if (PyBytes_Check(o)) {
    add_tag('B');
    add_text(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o)));
  } else if (PyComplex_Check(o)) {
    add_tag('C');
    add_bytes(bytes_, PyComplex_RealAsDouble(o));
    add_bytes(bytes_, PyComplex_ImagAsDouble(o));
  } else if (nb::isinstance<mx::Dtype>(leaf)) {
    add_tag('d');
    add_bytes(bytes_, nb::cast<mx::Dtype>(leaf).val());
  } else {
    return false;
  }
  return true;
}

void CompileKey::add_items(nb::handle sequence) {
  add_tag(PyList_Check(sequence.ptr()) ? 'L' : 'T');
  Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence.ptr());
  add_bytes(bytes_, sequence.type().ptr());
  add_bytes(bytes_, size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    add_arguments(PySequence_Fast_GET_ITEM(sequence.ptr(), i));
  }
}

void CompileKey::add_dict(nb::handle dict) {
  add_tag('D');
  add_bytes(bytes_, dict.type().ptr());
  add_bytes(bytes_, PyDict_Size(dict.ptr()));
  PyObject* key;
  PyObject* value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict.ptr(), &position, &key, &value)) {
    if (!add_constant(key)) {
      mx::invalid(
          "compile",
          "a key of type ",
          nb::type_name(nb::handle(key).type()).c_str(),
          " in a dict of arguments. Expected strings, numbers or None.");
    }
    add_arguments(value);
  }
}

void CompileKey::add_arguments(nb::handle tree) {
  if (const mx::array* a = as_array(tree)) {
    add_array(*a);
    return;
  }
  PyObject* o = tree.ptr();
  bool is_sequence = PyList_Check(o) || PyTuple_Check(o);
  if (is_sequence || PyDict_Check(o)) {
    if (Py_EnterRecursiveCall(" in the arguments of a compiled function")) {
      throw nb::python_error();
    }
    is_sequence ? add_items(tree) : add_dict(tree);
    Py_LeaveRecursiveCall();
  } else if (nb::isinstance<RandomState>(tree)) {
    add_array(mx::random::KeySequence::default_().state());
  } else if (!add_constant(tree)) {
    mx::invalid(
        "compile",
        "an argument of type ",
        nb::type_name(tree.type()).c_str(),
        ". Expected arrays, numbers, strings, None, and lists, tuples and "
        "dicts of these.");
  }
}

void CompileKey::add_captured(nb::handle tree) {
  add_tag('|');
  for (const mx::array& a : tree_arrays(tree)) {
    add_array(a);
  }
}

}  // namespace mlx::python
