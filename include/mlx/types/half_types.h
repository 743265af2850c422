// The 16-bit floating types: storage in 16 bits, arithmetic in float32.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <ostream>
#include <type_traits>

namespace mlx::core {

namespace detail {

/// IEEE binary16 bits of a float32, rounded to nearest even.
constexpr uint16_t float_to_half_bits(float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  uint32_t sign = (x >> 16) & 0x8000u;
  x &= 0x7fffffffu;
  if (x > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((x >> 13) & 0x1ffu));
  }
  if (x >= 0x477ff000u) {  // rounds to infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  }
  if (x < 0x38800000u) {  // subnormal: align the fraction at 2^-24
    if (x < 0x33000000u) {
      return static_cast<uint16_t>(sign);
    }
    uint32_t shift = 126u - (x >> 23);
    uint32_t fraction = (x & 0x7fffffu) | 0x800000u;
    uint32_t result = fraction >> shift;
    uint32_t rest = fraction & ((1u << shift) - 1u);
    uint32_t half = 1u << (shift - 1u);
    if (rest > half || (rest == half && (result & 1u))) {
      ++result;
    }
    return static_cast<uint16_t>(sign | result);
  }
  uint32_t rounded = x + 0xfffu + ((x >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float half_bits_to_float(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t exponent = (bits >> 10) & 0x1fu;
  uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1fu) {
    return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  }
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(
      sign | ((exponent + 112u) << 23) | (fraction << 13));
}

/// bfloat16 bits of a float32, rounded to nearest even; NaN stays NaN.
constexpr uint16_t float_to_bfloat_bits(float value) {
  uint32_t x = std::bit_cast<uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((x >> 16) | 0x40u);
  }
  return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

constexpr float bfloat_bits_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace detail

/// IEEE binary16.
typedef struct _MLX_Float16 {
  uint16_t bits_;

  _MLX_Float16() = default;
  constexpr _MLX_Float16(float value)
      : bits_(detail::float_to_half_bits(value)) {}
  template <typename T>
  requires(
      std::is_arithmetic_v<T> &&
      !std::is_same_v<T, float>) constexpr _MLX_Float16(T value)
      : _MLX_Float16(static_cast<float>(value)) {}
  constexpr operator float() const { return detail::half_bits_to_float(bits_); }
} float16_t;

/// The upper half of a float32.
typedef struct _MLX_BFloat16 {
  uint16_t bits_;

  _MLX_BFloat16() = default;
  constexpr _MLX_BFloat16(float value)
      : bits_(detail::float_to_bfloat_bits(value)) {}
  template <typename T>
  requires(
      std::is_arithmetic_v<T> &&
      !std::is_same_v<T, float>) constexpr _MLX_BFloat16(T value)
      : _MLX_BFloat16(static_cast<float>(value)) {}
  constexpr operator float() const {
    return detail::bfloat_bits_to_float(bits_);
  }
} bfloat16_t;

template <typename T>
constexpr bool is_signed_v =
    std::is_signed_v<T> || std::is_same_v<T, float16_t> ||
    std::is_same_v<T, bfloat16_t>;

template <typename T>
constexpr bool is_floating_point_v =
    std::is_floating_point_v<T> || std::is_same_v<T, float16_t> ||
    std::is_same_v<T, bfloat16_t>;

// Binary operators among themselves give the 16-bit type; next to float,
// double or an integer the other operand decides (integers: the 16-bit type).
#define MLX_HALF_OPERATORS(half)     \
  constexpr half operator-(half a) { \
    return half(-float(a));          \
  }                                  \
  MLX_HALF_BINARY(half, +)           \
  MLX_HALF_BINARY(half, -)           \
  MLX_HALF_BINARY(half, *)           \
  MLX_HALF_BINARY(half, /)

#define MLX_HALF_BINARY(half, op)                                           \
  constexpr half operator op(half a, half b) {                              \
    return half(float(a) op float(b));                                      \
  }                                                                         \
  constexpr float operator op(half a, float b) {                            \
    return float(a) op b;                                                   \
  }                                                                         \
  constexpr float operator op(float a, half b) {                            \
    return a op float(b);                                                   \
  }                                                                         \
  constexpr double operator op(half a, double b) {                          \
    return double(float(a)) op b;                                           \
  }                                                                         \
  constexpr double operator op(double a, half b) {                          \
    return a op double(float(b));                                           \
  }                                                                         \
  template <typename T>                                                     \
  requires(std::is_integral_v<T>) constexpr half operator op(half a, T b) { \
    return half(float(a) op float(b));                                      \
  }                                                                         \
  template <typename T>                                                     \
  requires(std::is_integral_v<T>) constexpr half operator op(T a, half b) { \
    return half(float(a) op float(b));                                      \
  }                                                                         \
  template <typename T>                                                     \
  requires(std::is_arithmetic_v<T>) constexpr half& operator op##=(         \
      half& a, T b) {                                                       \
    return a = half(float(a) op float(b));                                  \
  }                                                                         \
  constexpr half& operator op##=(half& a, half b) {                         \
    return a = half(float(a) op float(b));                                  \
  }

MLX_HALF_OPERATORS(float16_t)
MLX_HALF_OPERATORS(bfloat16_t)
#undef MLX_HALF_OPERATORS
#undef MLX_HALF_BINARY

// Side by side, the two 16-bit types meet in float32.
#define MLX_HALF_MIXED(op)                                 \
  constexpr float operator op(float16_t a, bfloat16_t b) { \
    return float(a) op float(b);                           \
  }                                                        \
  constexpr float operator op(bfloat16_t a, float16_t b) { \
    return float(a) op float(b);                           \
  }
MLX_HALF_MIXED(+)
MLX_HALF_MIXED(-)
MLX_HALF_MIXED(*)
MLX_HALF_MIXED(/)
#undef MLX_HALF_MIXED

namespace detail {

template <typename T>
constexpr bool is_half_v =
    std::is_same_v<T, float16_t> || std::is_same_v<T, bfloat16_t>;

/// Operand pairs with a 16-bit type, all compared as double or float.
template <typename A, typename B>
concept HalfPair = (is_half_v<A> &&
                    (is_half_v<B> || std::is_arithmetic_v<B>)) ||
                   (std::is_arithmetic_v<A> && is_half_v<B>);

template <typename A, typename B>
using HalfCompare = std::conditional_t<
    std::is_same_v<A, double> || std::is_same_v<B, double>,
    double,
    float>;

}  // namespace detail

// Exact matches, so that complex numbers are never as good a match.
#define MLX_HALF_COMPARE(op)                       \
  template <typename A, typename B>                \
  requires detail::HalfPair<A, B>                  \
  constexpr bool operator op(A a, B b) {           \
    using C = detail::HalfCompare<A, B>;           \
    return static_cast<C>(a) op static_cast<C>(b); \
  }
MLX_HALF_COMPARE(==)
MLX_HALF_COMPARE(!=)
MLX_HALF_COMPARE(<)
MLX_HALF_COMPARE(<=)
MLX_HALF_COMPARE(>)
MLX_HALF_COMPARE(>=)
#undef MLX_HALF_COMPARE

}  // namespace mlx::core
