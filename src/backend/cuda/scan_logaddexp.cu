// Running logarithms of sums of exponentials.
#include "backend/cuda/device/scan.cuh"

namespace mlx::core::cuda {

namespace {

// log(exp(a) + exp(b)) = larger + log1p(exp(smaller - larger)); equal
// infinities stay as they are.
struct LogAddExp {
  template <typename A>
  static __device__ __forceinline__ A neutral() {
    if constexpr (is_complex_v<A>) {
      return A(extreme<float>(false), 0.0f);
    } else {
      return extreme<A>(false);
    }
  }
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    A larger = is_less(b, a) ? a : b;
    A smaller = is_less(b, a) ? b : a;
    if constexpr (is_complex_v<A>) {
      return of_complex(larger, smaller);
    } else {
      if (larger == smaller && larger - larger != A(0)) {
        return larger;
      }
      return larger + log1p(exp(smaller - larger));
    }
  }

 private:
  // In double. exp(z) = e^re (cos im + i sin im); |1 + z|^2 - 1 is
  // re (2 + re) + im^2, which keeps small z.
  static __device__ __noinline__ complex64
  of_complex(complex64 larger, complex64 smaller) {
    if (is_nan(larger) || is_nan(smaller)) {
      float nan = __builtin_nanf("");
      return {nan, nan};
    }
    if (larger.re == smaller.re && larger.re - larger.re != 0.0f) {
      return larger;
    }
    double size = exp(static_cast<double>(smaller.re) - larger.re);
    double sine;
    double cosine;
    sincos(static_cast<double>(smaller.im) - larger.im, &sine, &cosine);
    double re = size * cosine;
    double im = size * sine;
    double length = 0.5 * log1p(re * (2.0 + re) + im * im);
    return {
        static_cast<float>(larger.re + length),
        static_cast<float>(larger.im + atan2(im, 1.0 + re))};
  }
};

}  // namespace

void scan_logaddexp_pass(const ScanPass& pass, Dtype dtype, Encoder& e) {
  if (dtype.val() == Dtype::Val::complex64) {
    return launch_scan<LogAddExp, complex64>(pass, e);
  }
  visit_real_float(dtype, [&](auto tag) {
    launch_scan<LogAddExp, typename decltype(tag)::type>(pass, e);
  });
}

}  // namespace mlx::core::cuda
