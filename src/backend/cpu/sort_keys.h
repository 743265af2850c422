// Every type as unsigned integers in the same order: then one sort serves all.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "mlx/dtype.h"

namespace mlx::core::cpu {

template <size_t Bytes>
using UnsignedOf = std::conditional_t<
    Bytes == 1,
    uint8_t,
    std::conditional_t<
        Bytes == 2,
        uint16_t,
        std::conditional_t<Bytes == 4, uint32_t, uint64_t>>>;

/// Keys compare as the values do; NaN is above everything. Zeros of both
/// signs get one key when `merge_zeros` (for a stable order), else -0 comes
/// first (so that keys can be turned back).
template <typename T>
UnsignedOf<sizeof(T)> to_key(T value, bool merge_zeros) {
  using U = UnsignedOf<sizeof(T)>;
  constexpr U kSign = U(1) << (8 * sizeof(T) - 1);
  if constexpr (std::is_same_v<T, complex64_t>) {
    uint64_t re = to_key(value.real(), merge_zeros);
    uint64_t im = to_key(value.imag(), merge_zeros);
    bool is_nan = re == 0xffffffffu || im == 0xffffffffu;
    return is_nan ? ~uint64_t{0} : (re << 32) | im;
  } else if constexpr (is_floating_point_v<T>) {
    if (value != value) {
      return static_cast<U>(~U(0));
    }
    if (merge_zeros && static_cast<double>(value) == 0.0) {
      return kSign;
    }
    U bits = std::bit_cast<U>(value);
    return static_cast<U>(bits & kSign ? ~bits : bits | kSign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<U>(static_cast<U>(value) ^ kSign);
  } else {
    return static_cast<U>(value);
  }
}

template <typename T>
T from_key(UnsignedOf<sizeof(T)> key) {
  using U = UnsignedOf<sizeof(T)>;
  constexpr U kSign = U(1) << (8 * sizeof(T) - 1);
  if constexpr (std::is_same_v<T, complex64_t>) {
    return {
        from_key<float>(static_cast<uint32_t>(key >> 32)),
        from_key<float>(static_cast<uint32_t>(key))};
  } else if constexpr (is_floating_point_v<T>) {
    // The key of NaN turns into a NaN too.
    return std::bit_cast<T>(static_cast<U>(key & kSign ? key & ~kSign : ~key));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(key ^ kSign);
  } else {
    return static_cast<T>(key);
  }
}

}  // namespace mlx::core::cpu
