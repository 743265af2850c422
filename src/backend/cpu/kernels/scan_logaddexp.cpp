// Running logarithms of sums of exponentials.
#include "backend/cpu/kernels/reduce_extremes.h"
#include "backend/cpu/kernels/scan_loops.h"
#include "backend/cpu/simd/math.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

// max + log1p(exp(min - max)); equal infinities stay as they are.
struct LogAddExp {
  template <typename A>
  static MLX_INLINE A neutral() {
    if constexpr (detail::is_same<A, Complex>) {
      return {-__builtin_inff(), 0.0f};
    } else {
      return lowest<A>();
    }
  }
  static MLX_INLINE Complex of(Complex a, Complex b) {
    return math::logaddexp(a, b);
  }
  template <typename T>
  static MLX_INLINE Vec<T> of(Vec<T> a, Vec<T> b) {
    Vec<T> high = maximum(a, b);
    Vec<T> low = minimum(a, b);
    Vec<T> sum = high + math::log1p(math::exp(low - high));
    return select((high == low) & is_infinite(high), high, sum);
  }

 private:
  template <typename T>
  static MLX_INLINE auto is_infinite(Vec<T> x) {
    return abs(x) == Vec<T>(highest<T>());
  }
};

}  // namespace

ScanFn scan_logaddexp_loop(Dtype dtype) {
  if (dtype.val() == Dtype::Val::complex64) {
    return &scans::scan_any<LogAddExp, Complex, Complex>;
  }
  return scans::float_loop<LogAddExp>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
