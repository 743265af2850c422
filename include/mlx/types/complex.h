// Complex numbers: complex64_t is what arrays hold; complex128_t serves
// host-side values. Ordering is lexicographic: real part, then imaginary.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>

#include "mlx/types/half_types.h"

namespace mlx::core {

struct complex64_t;
struct complex128_t;

template <typename T>
inline constexpr bool can_convert_to_complex128 =
    !std::is_same_v<T, complex128_t> && std::is_convertible_v<T, double>;

struct complex128_t : public std::complex<double> {
  complex128_t() = default;
  complex128_t(double v, double u) : std::complex<double>(v, u) {}
  complex128_t(std::complex<double> v) : std::complex<double>(v) {}
  template <
      typename T,
      typename = std::enable_if_t<can_convert_to_complex128<T>>>
  complex128_t(T x) : std::complex<double>(static_cast<double>(x)) {}
  operator float() const { return static_cast<float>(real()); }
};

template <typename T>
inline constexpr bool can_convert_to_complex64 =
    !std::is_same_v<T, complex64_t> && std::is_convertible_v<T, float>;

struct complex64_t : public std::complex<float> {
  complex64_t() = default;
  complex64_t(float v, float u) : std::complex<float>(v, u) {}
  complex64_t(std::complex<float> v) : std::complex<float>(v) {}
  template <
      typename T,
      typename = std::enable_if_t<can_convert_to_complex64<T>>>
  complex64_t(T x) : std::complex<float>(static_cast<float>(x)) {}
  operator float() const { return real(); }
};

inline bool operator<(const complex64_t& a, const complex64_t& b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}
inline bool operator>(const complex64_t& a, const complex64_t& b) {
  return b < a;
}
inline bool operator<=(const complex64_t& a, const complex64_t& b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() <= b.imag());
}
inline bool operator>=(const complex64_t& a, const complex64_t& b) {
  return b <= a;
}
inline complex64_t operator-(const complex64_t& v) {
  return {-v.real(), -v.imag()};
}
/// The remainder of real and imaginary part apart, with the divisor's sign.
inline complex64_t operator%(complex64_t a, complex64_t b) {
  auto part = [](float x, float y) {
    float r = std::fmod(x, y);
    return (r != 0 && (r < 0) != (y < 0)) ? r + y : r;
  };
  return {part(a.real(), b.real()), part(a.imag(), b.imag())};
}

// Without these, complex64_t beside complex64_t would be ambiguous between
// std::complex's templates and the conversion to float.
#define MLX_COMPLEX_OPERATOR(op)                                               \
  inline complex64_t operator op(const complex64_t& a, const complex64_t& b) { \
    return static_cast<const std::complex<float>&>(a)                          \
        op static_cast<const std::complex<float>&>(b);                         \
  }                                                                            \
  inline complex64_t operator op(                                              \
      const complex64_t& a, const std::complex<float>& b) {                    \
    return static_cast<const std::complex<float>&>(a) op b;                    \
  }                                                                            \
  inline complex64_t operator op(                                              \
      const std::complex<float>& a, const complex64_t& b) {                    \
    return a op static_cast<const std::complex<float>&>(b);                    \
  }                                                                            \
  template <typename T>                                                        \
  requires(                                                                    \
      std::is_arithmetic_v<T> || std::is_same_v<T, float16_t> ||               \
      std::is_same_v<T, bfloat16_t>) inline complex64_t                        \
  operator op(const complex64_t& a, T b) {                                     \
    return a op complex64_t(b);                                                \
  }                                                                            \
  template <typename T>                                                        \
  requires(                                                                    \
      std::is_arithmetic_v<T> || std::is_same_v<T, float16_t> ||               \
      std::is_same_v<T, bfloat16_t>) inline complex64_t                        \
  operator op(T a, const complex64_t& b) {                                     \
    return complex64_t(a) op b;                                                \
  }
MLX_COMPLEX_OPERATOR(+)
MLX_COMPLEX_OPERATOR(-)
MLX_COMPLEX_OPERATOR(*)
MLX_COMPLEX_OPERATOR(/)
#undef MLX_COMPLEX_OPERATOR

inline bool operator==(const complex64_t& a, const complex64_t& b) {
  return a.real() == b.real() && a.imag() == b.imag();
}

}  // namespace mlx::core
