// From element types known at run time to those of device code.
#pragma once

#include "backend/cuda/device/types.cuh"
#include "mlx/dtype.h"

namespace mlx::core::cuda {

template <typename T>
struct TypeTag {
  using type = T;
};

/// Calls f(TypeTag<T>()) with the device type of `dtype`.
template <typename F>
decltype(auto) visit_type(Dtype dtype, F&& f) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return f(TypeTag<bool>());
    case Dtype::Val::uint8:
      return f(TypeTag<uint8_t>());
    case Dtype::Val::uint16:
      return f(TypeTag<uint16_t>());
    case Dtype::Val::uint32:
      return f(TypeTag<uint32_t>());
    case Dtype::Val::uint64:
      return f(TypeTag<uint64_t>());
    case Dtype::Val::int8:
      return f(TypeTag<int8_t>());
    case Dtype::Val::int16:
      return f(TypeTag<int16_t>());
    case Dtype::Val::int32:
      return f(TypeTag<int32_t>());
    case Dtype::Val::int64:
      return f(TypeTag<int64_t>());
    case Dtype::Val::float16:
      return f(TypeTag<half>());
    case Dtype::Val::float32:
      return f(TypeTag<float>());
    case Dtype::Val::float64:
      return f(TypeTag<double>());
    case Dtype::Val::bfloat16:
      return f(TypeTag<bhalf>());
    default:
      return f(TypeTag<complex64>());
  }
}

/// The same for the real floating types; others are the caller's mistake.
template <typename F>
decltype(auto) visit_real_float(Dtype dtype, F&& f) {
  switch (dtype.val()) {
    case Dtype::Val::float16:
      return f(TypeTag<half>());
    case Dtype::Val::bfloat16:
      return f(TypeTag<bhalf>());
    case Dtype::Val::float64:
      return f(TypeTag<double>());
    default:
      return f(TypeTag<float>());
  }
}

/// An unsigned integer as wide as the elements, for code that only moves them.
template <typename F>
decltype(auto) visit_width(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f(TypeTag<uint8_t>());
    case 2:
      return f(TypeTag<uint16_t>());
    case 4:
      return f(TypeTag<uint32_t>());
    default:
      return f(TypeTag<uint64_t>());
  }
}

}  // namespace mlx::core::cuda
