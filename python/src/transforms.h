// What the Python faces of the function transforms share: the callable that a
// transform returns, and one call of a Python function whose arguments and
// results are taken apart into arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <vector>

#include "mlx/array.h"
#include "trees.h"

namespace mlx::python {

namespace nb = nanobind;
namespace mx = mlx::core;

/// What grad, vmap and the like return. Python's collector sees `fun`, so
/// that functions that refer to themselves are freed.
struct TransformedFunction {
  using Call = std::function<nb::object(
      const nb::object& fun, const nb::tuple& args, const nb::dict& kwargs)>;

  nb::object fun;
  /// Refers to no function.
  Call call;
};

nb::object transformed(nb::object fun, TransformedFunction::Call call);

/// fun(*args, **kwargs).
nb::object call_python(nb::handle fun, nb::handle args, nb::handle kwargs);

/// A Python object that a graph holds: let go with the interpreter locked,
/// on whatever thread the graph ends.
class Held {
 public:
  Held() = default;
  explicit Held(nb::object object);
  nb::handle get() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

/// One call of a Python function: ArrayFn wants arrays, Python trees.
class TreeCall {
 public:
  /// `op` is named in errors; it must outlive the call.
  TreeCall(
      const char* op,
      const nb::object& fun,
      const nb::tuple& args,
      const nb::dict& kwargs);

  /// All arrays of the arguments, then of the keywords. Taken out, because a
  /// graph that keeps this object must not keep them.
  std::vector<mx::array> take_inputs() { return std::move(inputs_); }
  /// The arguments' structure with marks.
  nb::handle args() const { return args_.get(); }
  nb::handle kwargs() const { return kwargs_.get(); }
  size_t num_positional() const { return num_positional_; }

  /// Calls the function on other arrays; remembers how its result was built.
  std::vector<mx::array> run(const std::vector<mx::array>& arrays);
  /// The last result's containers around other arrays.
  nb::object output(const std::vector<mx::array>& arrays) const;
  size_t num_outputs() const { return num_outputs_; }

 private:
  const char* op_;
  Held fun_;
  Held args_;
  Held kwargs_;
  Held output_;
  std::vector<mx::array> inputs_;
  size_t num_positional_ = 0;
  size_t num_outputs_ = 0;
};

/// An axis for each array of `tree` out of `axes`: None (-1), an int for all,
/// or a tree of these that has the containers of `tree` as far as it goes.
/// Negative axes are counted with `extra_dims` more dimensions. `name` is that
/// of the axes in errors.
std::vector<int> tree_axes(
    nb::handle tree, nb::handle axes, int extra_dims, const char* name);

void bind_transformed_function(nb::module_& m);

}  // namespace mlx::python
