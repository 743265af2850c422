// How Python arguments that many functions share become C++ values: streams,
// axes, shapes. Include this in every file that binds functions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::python {

namespace nb = nanobind;
namespace mx = mlx::core;
using namespace nb::literals;

/// `axis: None | int | Sequence[int]`.
struct Axes {
  enum class Given { none, one, many };
  Given given = Given::none;
  std::vector<int> values;

  bool none() const { return given == Given::none; }
  /// The named axes; all axes of an `ndim`-dimensional array for None.
  std::vector<int> of(int ndim) const;
  /// Numbers past 32 bits become the largest one, which is no axis either.
  void set(const std::vector<int64_t>& axes);
};

/// `shape: int | Sequence[int]`, checked to fit a shape when it is read.
struct Lengths {
  std::vector<int64_t> values;

  /// Raises std::overflow_error naming `op` past 2^31 - 1.
  mx::Shape shape(const char* op) const;
};

namespace detail {

/// Reads an object with __index__ (bool and float are none). False without a
/// Python error when it is not one or leaves 64 bits.
bool read_integer(nb::handle obj, int64_t& out) noexcept;
/// Reads a list, tuple or other sequence of integers.
bool read_integers(nb::handle obj, std::vector<int64_t>& out) noexcept;
bool read_stream(nb::handle obj, mx::StreamOrDevice& out) noexcept;

}  // namespace detail

}  // namespace mlx::python

namespace nanobind::detail {

template <>
struct type_caster<mlx::core::StreamOrDevice> {
  NB_TYPE_CASTER(
      mlx::core::StreamOrDevice,
      const_name("mlx.core.Stream | mlx.core.ThreadLocalStream | "
                 "mlx.core.Device | mlx.core.DeviceType | None"))

  template <typename Flags>
  bool from_python(handle src, Flags, cleanup_list*) noexcept {
    return src.is_none() || mlx::python::detail::read_stream(src, value);
  }
};

template <>
struct type_caster<mlx::python::Axes> {
  NB_TYPE_CASTER(mlx::python::Axes, const_name("None | int | Sequence[int]"))

  template <typename Flags>
  bool from_python(handle src, Flags, cleanup_list*) noexcept {
    using Given = mlx::python::Axes::Given;
    if (src.is_none()) {
      return true;
    }
    int64_t one;
    if (mlx::python::detail::read_integer(src, one)) {
      value.given = Given::one;
      value.set({one});
      return true;
    }
    std::vector<int64_t> many;
    if (!mlx::python::detail::read_integers(src, many)) {
      return false;
    }
    value.given = Given::many;
    value.set(many);
    return true;
  }
};

template <>
struct type_caster<mlx::python::Lengths> {
  NB_TYPE_CASTER(mlx::python::Lengths, const_name("int | Sequence[int]"))

  template <typename Flags>
  bool from_python(handle src, Flags, cleanup_list*) noexcept {
    int64_t one;
    if (mlx::python::detail::read_integer(src, one)) {
      value.values.assign(1, one);
      return true;
    }
    return mlx::python::detail::read_integers(src, value.values);
  }
};

}  // namespace nanobind::detail
