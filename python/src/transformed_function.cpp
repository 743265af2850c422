// The class of the callables that transforms return, and calls whose
// arguments are trees.
#include "casters.h"
#include "transforms.h"

namespace mlx::python {

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    Py_VISIT(nb::inst_ptr<TransformedFunction>(self)->fun.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  // Moved out first: freeing it may run code that comes back here.
  nb::object fun = std::move(nb::inst_ptr<TransformedFunction>(self)->fun);
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr}};

}  // namespace

nb::object transformed(nb::object fun, TransformedFunction::Call call) {
  return nb::cast(TransformedFunction{std::move(fun), std::move(call)});
}

nb::object call_python(nb::handle fun, nb::handle args, nb::handle kwargs) {
  PyObject* result = PyObject_Call(fun.ptr(), args.ptr(), kwargs.ptr());
  if (!result) {
    throw nb::python_error();
  }
  return nb::steal(result);
}

Held::Held(nb::object object)
    : object_(object.release().ptr(), [](PyObject* o) {
        // After the interpreter's end there is nobody to give it back to.
        if (nb::is_alive()) {
          nb::gil_scoped_acquire gil;
          Py_XDECREF(o);
        }
      }) {}

TreeCall::TreeCall(
    const char* op,
    const nb::object& fun,
    const nb::tuple& args,
    const nb::dict& kwargs)
    : op_(op), fun_(fun) {
  FlatTree positional = flatten_tree(args, OtherLeaves::keep, op);
  FlatTree named = flatten_tree(kwargs, OtherLeaves::keep, op);
  args_ = Held(std::move(positional.structure));
  kwargs_ = Held(std::move(named.structure));
  num_positional_ = positional.arrays.size();
  inputs_ = std::move(positional.arrays);
  inputs_.insert(inputs_.end(), named.arrays.begin(), named.arrays.end());
}

std::vector<mx::array> TreeCall::run(const std::vector<mx::array>& arrays) {
  nb::gil_scoped_acquire gil;
  size_t next = 0;
  nb::object args = fill_tree(args_.get(), arrays, next);
  nb::object kwargs = fill_tree(kwargs_.get(), arrays, next);
  nb::object result = call_python(fun_.get(), args, kwargs);
  FlatTree flat = flatten_tree(result, OtherLeaves::keep, op_);
  output_ = Held(std::move(flat.structure));
  num_outputs_ = flat.arrays.size();
  return std::move(flat.arrays);
}

nb::object TreeCall::output(const std::vector<mx::array>& arrays) const {
  return fill_tree(output_.get(), arrays);
}

void bind_transformed_function(nb::module_& m) {
  nb::class_<TransformedFunction>(
      m,
      "_TransformedFunction",
      nb::type_slots(slots),
      "A function made from another by a transform.")
      .def(
          "__call__",
          [](const TransformedFunction& self,
             nb::args args,
             nb::kwargs kwargs) {
            // Held here: a call may drop the last reference to self.
            nb::object fun = self.fun;
            TransformedFunction::Call call = self.call;
            return call(fun, args, kwargs);
          })
      .def_prop_ro("__wrapped__", [](const TransformedFunction& self) {
        return self.fun;
      });
}

}  // namespace mlx::python
