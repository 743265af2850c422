// From a Dtype to its name and to its C++ type.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "mlx/array.h"
#include "mlx/dtype.h"

namespace mlx::core {

MLX_API const char* dtype_to_string(Dtype arg);

template <typename T>
struct type_identity {
  using type = T;
};

#define MLX_GET_TYPE(tag) typename decltype(tag)::type

namespace detail {

template <typename F>
void dispatch_types(
    Dtype dt, Dtype::Category category, std::string_view tag, F&& f) {
  if (!issubdtype(dt, category)) {
    throw std::invalid_argument(
        std::string(tag) +
        " element type not supported: " + dtype_to_string(dt) + ".");
  }
  visit_dtype(dt, [&](auto v) { f(type_identity<decltype(v)>{}); });
}

}  // namespace detail

/// Calls f(type_identity<T>{}) with the C++ type of `dt`.
template <typename F>
void dispatch_all_types(Dtype dt, F&& f) {
  detail::dispatch_types(dt, generic, "", std::forward<F>(f));
}
/// The same, raising std::invalid_argument for types of other kinds.
template <typename F>
void dispatch_int_types(Dtype dt, std::string_view tag, F&& f) {
  detail::dispatch_types(dt, integer, tag, std::forward<F>(f));
}
template <typename F>
void dispatch_float_types(Dtype dt, std::string_view tag, F&& f) {
  detail::dispatch_types(dt, floating, tag, std::forward<F>(f));
}
template <typename F>
void dispatch_inexact_types(Dtype dt, std::string_view tag, F&& f) {
  detail::dispatch_types(dt, inexact, tag, std::forward<F>(f));
}
template <typename F>
void dispatch_int_float_types(Dtype dt, std::string_view tag, F&& f) {
  detail::dispatch_types(
      dt, dt == complex64 ? integer : number, tag, std::forward<F>(f));
}
template <typename F>
void dispatch_real_types(Dtype dt, std::string_view tag, F&& f) {
  detail::dispatch_types(
      dt, dt == complex64 ? integer : generic, tag, std::forward<F>(f));
}

}  // namespace mlx::core
