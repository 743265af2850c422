// Kernels of conversion from one type to all others. Included by the
// elementwise_convert_*.cu files only.
#pragma once

#include "backend/cuda/dispatch.h"
#include "backend/cuda/elementwise_convert.h"
#include "backend/cuda/elementwise_flat.cuh"

namespace mlx::core::cuda {

namespace detail {

template <typename From, typename To>
struct ConvertRow {
  static constexpr int arity = 1;
  using First = From;
  using Other = From;
  using Result = To;
  static constexpr int pack = sizeof(From) > sizeof(To) ? pack_size_v<From>
                                                        : pack_size_v<To>;
  static constexpr int group = 4;
  static constexpr int flat_packs =
      flat_packs_of(arity, pack, sizeof(From), Weight::light);
  static constexpr int flat_blocks = flat_blocks_of(pack, Weight::light);

  static __device__ __forceinline__ To of(From x) { return convert<To>(x); }
};

/// Signed integers that hold the same bits as the unsigned ones have no kernel
/// of their own: all but those of 32 and 64 bits that were floats.
template <typename From, typename To>
constexpr bool is_own_conversion() {
  if constexpr (std::is_integral_v<To> && std::is_signed_v<To>) {
    return !std::is_integral_v<From> && sizeof(To) >= 4;
  } else {
    return true;
  }
}

}  // namespace detail

template <typename From>
ElementwiseKernel<1> find_conversion_from(Dtype to) {
  return visit_type(to, [&](auto tag) -> ElementwiseKernel<1> {
    using To = typename decltype(tag)::type;
    if constexpr (detail::is_own_conversion<From, To>()) {
      return elementwise_kernel_of<detail::ConvertRow<From, To>>();
    } else {
      using Unsigned = std::make_unsigned_t<To>;
      return elementwise_kernel_of<detail::ConvertRow<From, Unsigned>>();
    }
  });
}

}  // namespace mlx::core::cuda
