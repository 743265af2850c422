// The class behind mx.random.state.
#include "random_state.h"

#include "casters.h"
#include "mlx/random.h"
#include "types/error.h"

namespace mlx::python {

namespace {

void check_index(int64_t index) {
  if (index != 0 && index != -1) {
    throw std::out_of_range(mx::message(
        "random.state", "index out of range: ", index, ". Expected 0 or -1."));
  }
}

const mx::array& current() {
  return mx::random::KeySequence::default_().state();
}

}  // namespace

void bind_random_state(nb::module_& m) {
  nb::class_<RandomState>(
      m,
      "_RandomState",
      "The key of the calling thread, as a list of one array.")
      .def("__len__", [](const RandomState&) { return 1; })
      .def(
          "__getitem__",
          [](const RandomState&, int64_t index) {
            check_index(index);
            return current();
          })
      .def(
          "__setitem__",
          [](const RandomState&, int64_t index, const mx::array& key) {
            check_index(index);
            mx::random::KeySequence::default_().set_state(key);
          })
      .def(
          "__iter__",
          [](const RandomState&) {
            nb::list one;
            one.append(current());
            return nb::iter(one);
          })
      .def("__repr__", [](const RandomState&) {
        nb::list one;
        one.append(current());
        return nb::repr(one);
      });
  m.attr("state") = RandomState{};
}

}  // namespace mlx::python
