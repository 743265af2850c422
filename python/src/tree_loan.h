// The arguments of a differentiated function: the caller's own lists and
// dicts, in which tracers stand while the function runs.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "mlx/array.h"

namespace mlx::python {

namespace nb = nanobind;
namespace mx = mlx::core;

/// Puts tracers in the places of a tree's arrays, and the arrays back at the
/// end. Since containers stay the same objects, modules can be called, and
/// what the function itself writes to them the caller finds afterwards.
class TreeLoan {
 public:
  /// The tracers that lend() takes one after the other.
  explicit TreeLoan(const std::vector<mx::array>& tracers)
      : tracers_(tracers) {}
  ~TreeLoan();
  TreeLoan(const TreeLoan&) = delete;
  TreeLoan& operator=(const TreeLoan&) = delete;

  /// What the function gets in place of `tree`: an array's tracer, the same
  /// list or dict, a new tuple of the same type, other leaves as they are. A
  /// container that was lent before is copied, so that each argument has
  /// tracers of its own.
  nb::object lend(nb::handle tree);

  /// The same for state that the function finds by itself: mx.random.state is
  /// the tracer until the end.
  void lend_captured(nb::handle tree);

 private:
  nb::object next_tracer(nb::handle array);
  nb::object lend_leaf(nb::handle leaf);
  nb::object lend_list(nb::handle list);
  nb::object lend_dict(nb::handle dict);
  nb::object lend_tuple(nb::handle tuple);
  /// The array that `value` is the tracer of; null if it is none.
  PyObject* original(PyObject* value) const;

  const std::vector<mx::array>& tracers_;
  size_t next_ = 0;
  struct Swapped {
    nb::object tracer;
    nb::object original;
  };
  std::unordered_map<PyObject*, Swapped> swapped_;
  std::unordered_map<PyObject*, nb::object> containers_;
  bool captured_ = false;
  std::optional<mx::array> random_state_;
};

}  // namespace mlx::python
