// What a trace of a Python function depends on, as bytes: the structure of the
// arguments, their constants, and the types and shapes of their arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "mlx/array.h"

namespace mlx::python {

/// Walks over trees of arguments, writes the key and gathers the arrays.
class CompileKey {
 public:
  explicit CompileKey(bool shapeless);

  /// Arguments: raises std::invalid_argument for leaves that are neither arrays
  /// nor constants (bool, int, float, str, bytes, None, complex, Dtype).
  void add_arguments(nanobind::handle tree);
  /// Captured state: its arrays count, other leaves do not.
  void add_captured(nanobind::handle tree);

  const std::string& bytes() const { return bytes_; }
  const std::vector<core::array>& arrays() const { return arrays_; }

 private:
  void add_tag(char tag) { bytes_.push_back(tag); }
  void add_array(const core::array& a);
  void add_items(nanobind::handle sequence);
  void add_dict(nanobind::handle dict);
  bool add_constant(nanobind::handle leaf);
  void add_text(const char* text, size_t size);

  bool shapeless_;
  std::string bytes_;
  std::vector<core::array> arrays_;
};

}  // namespace mlx::python
