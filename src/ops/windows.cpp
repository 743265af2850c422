// Window functions. A single sample is 1, none an empty array, as in NumPy.
#include "mlx/ops/windows.h"

#include "mlx/ops.h"

namespace mlx::core {

namespace {

constexpr double kPi = 3.14159265358979323846;

// `window` of the positions n / (M - 1) of the samples, from 0 to 1.
template <typename Window>
array sampled(int M, StreamOrDevice s, Window&& window) {
  if (M <= 1) {
    return ones({M == 1 ? 1 : 0}, float32, s);
  }
  return window(divide(
      arange(static_cast<double>(M), s), array(static_cast<float>(M - 1)), s));
}

// The term `factor * cos(2 pi turns x)`.
array wave(double factor, double turns, const array& x, StreamOrDevice s) {
  array angle = multiply(array(static_cast<float>(2 * kPi * turns)), x, s);
  return multiply(array(static_cast<float>(factor)), cos(angle, s), s);
}

}  // namespace

array bartlett(int M, StreamOrDevice s) {
  return sampled(M, s, [&](const array& x) {
    array from_middle = subtract(multiply(array(2.0f), x, s), array(1.0f), s);
    return subtract(array(1.0f), abs(from_middle, s), s);
  });
}

array hanning(int M, StreamOrDevice s) {
  return sampled(M, s, [&](const array& x) {
    return add(array(0.5f), wave(-0.5, 1, x, s), s);
  });
}

array hamming(int M, StreamOrDevice s) {
  return sampled(M, s, [&](const array& x) {
    return add(array(0.54f), wave(-0.46, 1, x, s), s);
  });
}

array blackman(int M, StreamOrDevice s) {
  return sampled(M, s, [&](const array& x) {
    array waves = add(wave(-0.5, 1, x, s), wave(0.08, 2, x, s), s);
    return add(array(0.42f), waves, s);
  });
}

}  // namespace mlx::core
