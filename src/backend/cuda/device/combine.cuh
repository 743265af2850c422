// The ways in which reductions and scans combine elements: what is neutral,
// and two values made one. Halves are combined in float.
#pragma once

#include <limits>

#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

template <typename A>
__device__ __forceinline__ bool is_nan(A x) {
  return x != x;
}
__device__ __forceinline__ bool is_nan(complex64 x) {
  return x.re != x.re || x.im != x.im;
}

/// Complex numbers are in lexicographic order.
template <typename A>
__device__ __forceinline__ bool is_less(A a, A b) {
  if constexpr (is_complex_v<A>) {
    return a.re < b.re || (a.re == b.re && a.im < b.im);
  } else {
    return a < b;
  }
}

/// The largest of all values, or the smallest.
template <typename A>
__device__ __forceinline__ A extreme(bool largest) {
  if constexpr (is_complex_v<A>) {
    float x = extreme<float>(largest);
    return A(x, x);
  } else if constexpr (std::is_floating_point_v<A>) {
    return A(largest ? __builtin_huge_valf() : -__builtin_huge_valf());
  } else {
    return largest ? std::numeric_limits<A>::max()
                   : std::numeric_limits<A>::min();
  }
}

/// Integers wrap: callers hand in unsigned ones.
struct Sum {
  template <typename A>
  static __device__ __forceinline__ A neutral() {
    return A(0);
  }
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    if constexpr (is_complex_v<A>) {
      return A(a.re + b.re, a.im + b.im);
    } else {
      return static_cast<A>(a + b);
    }
  }
};

struct Prod {
  template <typename A>
  static __device__ __forceinline__ A neutral() {
    return A(1);
  }
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    if constexpr (is_complex_v<A>) {
      double c = b.re;
      double d = b.im;
      return A(
          static_cast<float>(a.re * c - a.im * d),
          static_cast<float>(a.re * d + a.im * c));
    } else if constexpr (sizeof(A) < 4) {
      return static_cast<A>(static_cast<unsigned>(a) * b);
    } else {
      return a * b;
    }
  }
};

/// NaN when either is. Of floats it is one instruction, which takes -0 for less
/// than 0.
struct Max {
  template <typename A>
  static __device__ __forceinline__ A neutral() {
    return extreme<A>(false);
  }
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    if constexpr (std::is_same_v<A, float>) {
      float larger;
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
      return larger;
    } else {
      return is_nan(a) || (!is_nan(b) && is_less(b, a)) ? a : b;
    }
  }
};

struct Min {
  template <typename A>
  static __device__ __forceinline__ A neutral() {
    return extreme<A>(true);
  }
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    if constexpr (std::is_same_v<A, float>) {
      float smaller;
      asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
      return smaller;
    } else {
      return is_nan(a) || (!is_nan(b) && is_less(a, b)) ? a : b;
    }
  }
};

}  // namespace mlx::core::cuda
