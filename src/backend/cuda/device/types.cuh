// Element types on the device: halves, complex numbers, what they are computed
// in, and packs of them that are read and written with one access.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace mlx::core::cuda {

using half = __half;
using bhalf = __nv_bfloat16;

/// As complex64_t of the host.
struct alignas(8) complex64 {
  float re;
  float im;

  complex64() = default;
  __host__ __device__ constexpr complex64(float re, float im = 0.0f)
      : re(re), im(im) {}
};

template <typename T>
inline constexpr bool is_half_v =
    std::is_same_v<T, half> || std::is_same_v<T, bhalf>;
template <typename T>
inline constexpr bool is_complex_v = std::is_same_v<T, complex64>;
/// Types with NaN and infinities: halves, float, double.
template <typename T>
inline constexpr bool is_real_float_v =
    is_half_v<T> || std::is_floating_point_v<T>;

/// What values of T are computed in: float for halves, else T.
template <typename T>
using compute_t = std::conditional_t<is_half_v<T>, float, T>;

template <typename T>
__device__ __forceinline__ compute_t<T> to_compute(T x) {
  if constexpr (std::is_same_v<T, half>) {
    return __half2float(x);
  } else if constexpr (std::is_same_v<T, bhalf>) {
    return __bfloat162float(x);
  } else {
    return x;
  }
}

/// Conversion by MLX's rules: bool is "not zero", complex to real drops the
/// imaginary part, floats to integers truncate.
template <typename To, typename From>
__device__ __forceinline__ To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_half_v<From>) {
    return convert<To>(to_compute(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (is_complex_v<From>) {
      return x.re != 0.0f || x.im != 0.0f;
    } else {
      return x != From(0);
    }
  } else if constexpr (is_complex_v<From>) {
    return convert<To>(x.re);
  } else if constexpr (is_complex_v<To>) {
    return complex64(static_cast<float>(x), 0.0f);
  } else if constexpr (std::is_same_v<To, half>) {
    return __float2half_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bhalf>) {
    return __float2bfloat16_rn(static_cast<float>(x));
  } else if constexpr (
      std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Narrow and unsigned integers by way of signed ones, as the host does:
    // negative numbers wrap.
    if constexpr (sizeof(To) < 4) {
      return static_cast<To>(static_cast<int32_t>(x));
    } else if constexpr (sizeof(To) == 4 && std::is_unsigned_v<To>) {
      return static_cast<To>(static_cast<int64_t>(x));
    } else if constexpr (std::is_unsigned_v<To>) {
      return x < From(0) ? static_cast<To>(static_cast<int64_t>(x))
                         : static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  } else {
    return static_cast<To>(x);
  }
}

/// N neighbouring elements, read and written as one.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];

  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  __device__ __forceinline__ const T& operator[](int i) const {
    return values[i];
  }
};

/// As many as 16 bytes hold, the widest access of a thread.
template <typename T>
inline constexpr int pack_size_v = 16 / sizeof(T);

template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, typename T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

}  // namespace mlx::core::cuda
