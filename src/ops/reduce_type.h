// Which combination a reduction makes; shared with kernels, so no arrays here.
#pragma once

#include <cstdint>

#include "mlx/dtype.h"

namespace mlx::core {

enum class ReduceType : uint8_t { all, any, sum, prod, min, max };

/// The type in which elements of type `t` are combined: 16-bit floats in
/// float32, small integers in 32 bits for sums and products.
constexpr Dtype reduce_accumulator(ReduceType type, Dtype t) {
  bool is_half = t.val() == Dtype::Val::float16 ||  //
                 t.val() == Dtype::Val::bfloat16;
  switch (type) {
    case ReduceType::all:
    case ReduceType::any:
      return bool_;
    case ReduceType::min:
    case ReduceType::max:
      return is_half ? float32 : t;
    default:
      break;
  }
  switch (t.val()) {
    case Dtype::Val::bool_:
    case Dtype::Val::int8:
    case Dtype::Val::int16:
      return int32;
    case Dtype::Val::uint8:
    case Dtype::Val::uint16:
      return uint32;
    default:
      return is_half ? float32 : t;
  }
}

}  // namespace mlx::core
