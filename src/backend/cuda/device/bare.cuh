// What device headers take from the standard library and from the toolkit, for
// a compiler that is given no headers: text that is made at run time begins
// with this instead of the includes, which cost more than all the rest.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;

constexpr float __builtin_huge_valf() {
  return __builtin_bit_cast(float, 0x7f800000);
}

namespace std {

template <typename A, typename B>
inline constexpr bool is_same_v = false;
template <typename A>
inline constexpr bool is_same_v<A, A> = true;

template <bool first, typename A, typename B>
struct conditional {
  using type = A;
};
template <typename A, typename B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool first, typename A, typename B>
using conditional_t = typename conditional<first, A, B>::type;

template <typename T>
inline constexpr bool is_floating_point_v =
    is_same_v<T, float> || is_same_v<T, double>;

// Enumerators, because members that are variables would be kept in the program.
template <typename T>
struct whole {
  enum { is = 0, has_sign = 0 };
};
template <>
struct whole<bool> {
  enum { is = 1, has_sign = 0 };
};
#define MLX_WHOLE(S, U)            \
  template <>                      \
  struct whole<S> {                \
    enum { is = 1, has_sign = 1 }; \
    using as_unsigned = U;         \
  };                               \
  template <>                      \
  struct whole<U> {                \
    enum { is = 1, has_sign = 0 }; \
    using as_unsigned = U;         \
  };
MLX_WHOLE(int8_t, uint8_t)
MLX_WHOLE(int16_t, uint16_t)
MLX_WHOLE(int32_t, uint32_t)
MLX_WHOLE(int64_t, uint64_t)
MLX_WHOLE(long long, unsigned long long)
#undef MLX_WHOLE

template <typename T>
inline constexpr bool is_integral_v = whole<T>::is;
template <typename T>
inline constexpr bool is_signed_v =
    whole<T>::has_sign || is_floating_point_v<T>;
template <typename T>
inline constexpr bool is_unsigned_v = whole<T>::is && !whole<T>::has_sign;
template <typename T>
using make_unsigned_t = typename whole<T>::as_unsigned;

template <typename A, typename B>
concept same_as = is_same_v<A, B>;
template <typename T>
concept integral = is_integral_v<T>;
template <typename T>
concept floating_point = is_floating_point_v<T>;

/// Of integers.
template <typename T>
struct numeric_limits {
  enum : int { bits = is_same_v<T, bool> ? 1 : 8 * sizeof(T) };
  static constexpr T max() {
    return static_cast<T>(
        ~uint64_t(0) >> (64 - bits + (is_signed_v<T> ? 1 : 0)));
  }
  static constexpr T min() {
    return is_signed_v<T> ? static_cast<T>(-max() - 1) : T(0);
  }
};

}  // namespace std

struct __half {
  unsigned short bits;
};
struct __nv_bfloat16 {
  unsigned short bits;
};

inline float __half2float(__half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
inline __half __float2half_rn(float x) {
  __half y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
inline float __bfloat162float(__nv_bfloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
// As one of a pair: alone it is converted at an eighth of the rate.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return {static_cast<unsigned short>(pair)};
}
