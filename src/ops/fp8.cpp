// Numbers of 8 bits: decoded by a table of all 256, encoded by arithmetic on
// the bits of float32.
#include "mlx/ops/fp8.h"

#include <cmath>
#include <limits>
#include <vector>

#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core {

namespace {

constexpr float kLargest = 448.0f;
constexpr float kSmallestNormal = 0x1p-6f;

float decoded(int code) {
  int exponent = (code >> 3) & 15;
  int mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  float size =
      exponent == 0
          ? std::ldexp(static_cast<float>(mantissa), -9)
          : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code & 128 ? -size : size;
}

array all_codes() {
  std::vector<float> values;
  for (int code = 0; code < 256; ++code) {
    values.push_back(decoded(code));
  }
  return array(values.data(), Shape{256}, float32);
}

}  // namespace

array from_fp8(array x, Dtype dtype, StreamOrDevice s) {
  if (x.dtype() != uint8) {
    invalid("from_fp8", "type not accepted: ", x.dtype(), ". Expected uint8.");
  }
  if (!issubdtype(dtype, floating)) {
    invalid("from_fp8", "no real floating type: ", dtype, ".");
  }
  return take(astype(all_codes(), dtype, s), stop_gradient(x, s), 0, s);
}

array to_fp8(array x, StreamOrDevice s) {
  if (!issubdtype(x.dtype(), floating)) {
    invalid("to_fp8", "no real floating type: ", x.dtype(), ".");
  }
  array value = astype(stop_gradient(x, s), float32, s);
  array top(kLargest);
  array size = abs(value, s);
  size = where(less(size, top, s), size, top, s);
  // Normal numbers: 20 of 23 mantissa bits are rounded away, halves to even,
  // and the exponent's bias goes from 127 to 7.
  array bits = view(size, uint32, s);
  array odd =
      bitwise_and(right_shift(bits, array(20, uint32), s), array(1, uint32), s);
  array half = add(array(0x7ffff, uint32), odd, s);
  array normal = subtract(
      right_shift(add(bits, half, s), array(20, uint32), s),
      array(120 << 3, uint32),
      s);
  // Below, the code counts steps of 2^-9; that of 8 is the first normal number.
  array steps = round(multiply(size, array(0x1p9f), s), s);
  array code = where(
      less(size, array(kSmallestNormal), s),
      astype(steps, uint32, s),
      normal,
      s);
  array sign = right_shift(view(value, uint32, s), array(31, uint32), s);
  sign = left_shift(sign, array(7, uint32), s);
  return astype(bitwise_or(code, sign, s), uint8, s);
}

}  // namespace mlx::core
