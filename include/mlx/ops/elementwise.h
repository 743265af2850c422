// Operations that act on each element by itself. Operands broadcast as in
// NumPy and are promoted to a common type; functions that need a floating type
// take integers and bool as float32. Raises std::invalid_argument for shapes
// that do not broadcast and for types that an operation does not accept.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// The absolute value; of complex64 the magnitude, float32.
MLX_API array abs(const array& a, StreamOrDevice s = {});

/// The input itself.
MLX_API array positive(const array& a, StreamOrDevice s = {});

/// -a. Raises std::invalid_argument for bool.
MLX_API array negative(const array& a, StreamOrDevice s = {});

/// -1, 0 or 1; of complex64 z / |z|.
MLX_API array sign(const array& a, StreamOrDevice s = {});

/// Whether an element is zero, bool.
MLX_API array logical_not(const array& a, StreamOrDevice s = {});

/// 1 / a.
MLX_API array reciprocal(const array& a, StreamOrDevice s = {});

/// The largest integer not above a. Raises for complex64.
MLX_API array floor(const array& a, StreamOrDevice s = {});

/// The smallest integer not below a. Raises for complex64.
MLX_API array ceil(const array& a, StreamOrDevice s = {});

/// a without its fraction.
MLX_API array trunc(const array& a, StreamOrDevice s = {});

/// a * a.
MLX_API array square(const array& a, StreamOrDevice s = {});

/// e to the a.
MLX_API array exp(const array& a, StreamOrDevice s = {});

/// The sine of radians.
MLX_API array sin(const array& a, StreamOrDevice s = {});

/// The cosine of radians.
MLX_API array cos(const array& a, StreamOrDevice s = {});

/// The tangent of radians.
MLX_API array tan(const array& a, StreamOrDevice s = {});

/// The inverse sine in radians.
MLX_API array arcsin(const array& a, StreamOrDevice s = {});

/// The inverse cosine in radians.
MLX_API array arccos(const array& a, StreamOrDevice s = {});

/// The inverse tangent in radians.
MLX_API array arctan(const array& a, StreamOrDevice s = {});

/// The hyperbolic sine.
MLX_API array sinh(const array& a, StreamOrDevice s = {});

/// The hyperbolic cosine.
MLX_API array cosh(const array& a, StreamOrDevice s = {});

/// The hyperbolic tangent.
MLX_API array tanh(const array& a, StreamOrDevice s = {});

/// The inverse hyperbolic sine.
MLX_API array arcsinh(const array& a, StreamOrDevice s = {});

/// The inverse hyperbolic cosine.
MLX_API array arccosh(const array& a, StreamOrDevice s = {});

/// The inverse hyperbolic tangent.
MLX_API array arctanh(const array& a, StreamOrDevice s = {});

/// Radians to degrees.
MLX_API array degrees(const array& a, StreamOrDevice s = {});

/// Degrees to radians.
MLX_API array radians(const array& a, StreamOrDevice s = {});

/// The natural logarithm.
MLX_API array log(const array& a, StreamOrDevice s = {});

/// The logarithm to base 2.
MLX_API array log2(const array& a, StreamOrDevice s = {});

/// The logarithm to base 10.
MLX_API array log10(const array& a, StreamOrDevice s = {});

/// log(1 + a), accurate near zero.
MLX_API array log1p(const array& a, StreamOrDevice s = {});

/// 1 / (1 + exp(-a)).
MLX_API array sigmoid(const array& a, StreamOrDevice s = {});

/// The error function.
MLX_API array erf(const array& a, StreamOrDevice s = {});

/// The inverse of erf.
MLX_API array erfinv(const array& a, StreamOrDevice s = {});

/// exp(a) - 1, accurate near zero.
MLX_API array expm1(const array& a, StreamOrDevice s = {});

/// The square root.
MLX_API array sqrt(const array& a, StreamOrDevice s = {});

/// 1 / sqrt(a).
MLX_API array rsqrt(const array& a, StreamOrDevice s = {});

/// The complex conjugate.
MLX_API array conjugate(const array& a, StreamOrDevice s = {});

/// The real part, float32 for complex64.
MLX_API array real(const array& a, StreamOrDevice s = {});

/// The imaginary part, float32; zero for real types.
MLX_API array imag(const array& a, StreamOrDevice s = {});

/// All bits flipped; of bool the logical not. Integers and bool only.
MLX_API array bitwise_invert(const array& a, StreamOrDevice s = {});

/// Whether an element is NaN, bool.
MLX_API array isnan(const array& a, StreamOrDevice s = {});

/// Whether an element is infinite, bool.
MLX_API array isinf(const array& a, StreamOrDevice s = {});

/// Whether an element is neither infinite nor NaN, bool.
MLX_API array isfinite(const array& a, StreamOrDevice s = {});

/// Whether an element is +infinity, bool.
MLX_API array isposinf(const array& a, StreamOrDevice s = {});

/// Whether an element is -infinity, bool.
MLX_API array isneginf(const array& a, StreamOrDevice s = {});

/// The input, as a constant to derivatives.
MLX_API array stop_gradient(const array& a, StreamOrDevice s = {});

/// Rounds half to even after scaling by 10^decimals.
MLX_API array round(const array& a, int decimals, StreamOrDevice s = {});
inline array round(const array& a, StreamOrDevice s = {}) {
  return round(a, 0, s);
}

/// NaN, +infinity and -infinity replaced by the given numbers; infinities by
/// default by the limits of the type. Integers are returned as they are.
MLX_API array nan_to_num(
    const array& a,
    float nan = 0.0f,
    const std::optional<float> posinf = std::nullopt,
    const std::optional<float> neginf = std::nullopt,
    StreamOrDevice s = {});

/// a == b, bool; NaN equals nothing.
MLX_API array equal(const array& a, const array& b, StreamOrDevice s = {});

/// a != b, bool.
MLX_API array not_equal(const array& a, const array& b, StreamOrDevice s = {});

/// a > b, bool; complex64 by real, then imaginary part.
MLX_API array greater(const array& a, const array& b, StreamOrDevice s = {});

/// a >= b, bool.
MLX_API array
greater_equal(const array& a, const array& b, StreamOrDevice s = {});

/// a < b, bool.
MLX_API array less(const array& a, const array& b, StreamOrDevice s = {});

/// a <= b, bool.
MLX_API array less_equal(const array& a, const array& b, StreamOrDevice s = {});

/// Whether both are not zero, bool.
MLX_API array
logical_and(const array& a, const array& b, StreamOrDevice s = {});

/// Whether one is not zero, bool.
MLX_API array logical_or(const array& a, const array& b, StreamOrDevice s = {});

/// Whether exactly one is not zero, bool.
MLX_API array
logical_xor(const array& a, const array& b, StreamOrDevice s = {});

/// log(exp(a) + exp(b)) without overflow.
MLX_API array logaddexp(const array& a, const array& b, StreamOrDevice s = {});

/// The sum.
MLX_API array add(const array& a, const array& b, StreamOrDevice s = {});

/// The difference.
MLX_API array subtract(const array& a, const array& b, StreamOrDevice s = {});

/// The product.
MLX_API array multiply(const array& a, const array& b, StreamOrDevice s = {});

/// The quotient; integers give float32.
MLX_API array divide(const array& a, const array& b, StreamOrDevice s = {});

/// The quotient rounded down, for every type; an integer divided by zero gives
/// 0.
MLX_API array
floor_divide(const array& a, const array& b, StreamOrDevice s = {});

/// a - b * floor_divide(a, b): carries the divisor's sign. Raises for
/// complex64.
MLX_API array remainder(const array& a, const array& b, StreamOrDevice s = {});

/// The larger one; NaN if either is.
MLX_API array maximum(const array& a, const array& b, StreamOrDevice s = {});

/// The smaller one; NaN if either is.
MLX_API array minimum(const array& a, const array& b, StreamOrDevice s = {});

/// The angle of the point (b, a) in radians.
MLX_API array arctan2(const array& a, const array& b, StreamOrDevice s = {});

/// a to the b; integers wrap, a negative exponent gives 0.
MLX_API array power(const array& a, const array& b, StreamOrDevice s = {});

/// Integers and bool only.
MLX_API array
bitwise_and(const array& a, const array& b, StreamOrDevice s = {});

/// Integers and bool only.
MLX_API array bitwise_or(const array& a, const array& b, StreamOrDevice s = {});

/// Integers and bool only.
MLX_API array
bitwise_xor(const array& a, const array& b, StreamOrDevice s = {});

/// a shifted left by b bits. Integers and bool only.
MLX_API array left_shift(const array& a, const array& b, StreamOrDevice s = {});

/// a shifted right by b bits. Integers and bool only.
MLX_API array
right_shift(const array& a, const array& b, StreamOrDevice s = {});

/// {floor_divide(a, b), remainder(a, b)}, both constants for derivatives.
MLX_API std::vector<array> divmod(
    const array& a, const array& b, StreamOrDevice s = {});

/// x where the condition is not zero, else y.
MLX_API array where(
    const array& condition,
    const array& x,
    const array& y,
    StreamOrDevice s = {});

/// a limited to [a_min, a_max]; at least one limit must be given.
MLX_API array clip(
    const array& a,
    const std::optional<array>& a_min = std::nullopt,
    const std::optional<array>& a_max = std::nullopt,
    StreamOrDevice s = {});

/// |a - b| <= atol + rtol * |b|, bool; equal infinities are close.
MLX_API array isclose(
    const array& a,
    const array& b,
    double rtol = 1e-5,
    double atol = 1e-8,
    bool equal_nan = false,
    StreamOrDevice s = {});

/// Whether all elements are close, a 0-d bool.
MLX_API array allclose(
    const array& a,
    const array& b,
    double rtol = 1e-5,
    double atol = 1e-8,
    bool equal_nan = false,
    StreamOrDevice s = {});

/// Whether shapes and all elements are equal, a 0-d bool.
MLX_API array array_equal(
    const array& a, const array& b, bool equal_nan, StreamOrDevice s = {});
inline array array_equal(
    const array& a, const array& b, StreamOrDevice s = {}) {
  return array_equal(a, b, false, s);
}

MLX_API array operator-(const array& a);
MLX_API array operator~(const array& a);

// Operators beside an array; a number takes its own C++ type's element type.
#define MLX_ARRAY_OPERATOR(op, function)                            \
  inline array operator op(const array& a, const array& b) {        \
    return function(a, b);                                          \
  }                                                                 \
  template <typename T>                                             \
  requires(!is_array_v<T>) array operator op(T a, const array& b) { \
    return function(array(a), b);                                   \
  }                                                                 \
  template <typename T>                                             \
  requires(!is_array_v<T>) array operator op(const array& a, T b) { \
    return function(a, array(b));                                   \
  }
MLX_ARRAY_OPERATOR(==, equal)
MLX_ARRAY_OPERATOR(!=, not_equal)
MLX_ARRAY_OPERATOR(>, greater)
MLX_ARRAY_OPERATOR(>=, greater_equal)
MLX_ARRAY_OPERATOR(<, less)
MLX_ARRAY_OPERATOR(<=, less_equal)
MLX_ARRAY_OPERATOR(+, add)
MLX_ARRAY_OPERATOR(-, subtract)
MLX_ARRAY_OPERATOR(*, multiply)
MLX_ARRAY_OPERATOR(%, remainder)
#undef MLX_ARRAY_OPERATOR

inline array operator/(const array& a, const array& b) {
  return divide(a, b);
}
inline array operator/(double a, const array& b) {
  return divide(array(a), b);
}
inline array operator/(const array& a, double b) {
  return divide(a, array(b));
}
inline array operator&&(const array& a, const array& b) {
  return logical_and(a, b);
}
inline array operator||(const array& a, const array& b) {
  return logical_or(a, b);
}
inline array operator&(const array& a, const array& b) {
  return bitwise_and(a, b);
}
inline array operator|(const array& a, const array& b) {
  return bitwise_or(a, b);
}
inline array operator^(const array& a, const array& b) {
  return bitwise_xor(a, b);
}
inline array operator<<(const array& a, const array& b) {
  return left_shift(a, b);
}
inline array operator>>(const array& a, const array& b) {
  return right_shift(a, b);
}

}  // namespace mlx::core
