// Memory-bound loops, one for each way values meet and each type. float16 and
// bfloat16 are rounded after every step, as a sum kept in memory must be.
#include "backend/cpu/kernels/combine.h"

#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

struct Complex {
  float re;
  float im;
};

template <typename T>
inline constexpr bool is_half = false;
template <>
inline constexpr bool is_half<float16_t> = true;
template <>
inline constexpr bool is_half<bfloat16_t> = true;

struct Replace {
  template <typename T>
  static MLX_INLINE T meet(T, T b) {
    return b;
  }
};

// Integers wrap: computed as uint64_t, whose low bits are right for all.
struct Sum {
  template <typename T>
  static MLX_INLINE T meet(T a, T b) {
    if constexpr (T(0.5f) == T(0)) {
      return T(uint64_t(a) + uint64_t(b));
    } else {
      return a + b;
    }
  }
  static MLX_INLINE Complex meet(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  static MLX_INLINE Vec<float> meet(Vec<float> a, Vec<float> b) {
    return a + b;
  }
};

struct Prod {
  template <typename T>
  static MLX_INLINE T meet(T a, T b) {
    if constexpr (T(0.5f) == T(0)) {
      return T(uint64_t(a) * uint64_t(b));
    } else {
      return a * b;
    }
  }
  static MLX_INLINE Complex meet(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  static MLX_INLINE Vec<float> meet(Vec<float> a, Vec<float> b) {
    return a * b;
  }
};

// The second when equal; NaN when either is.
struct Max {
  template <typename T>
  static MLX_INLINE T meet(T a, T b) {
    return a > b || a != a ? a : b;
  }
  static MLX_INLINE Complex meet(Complex a, Complex b) {
    bool nan = a.re != a.re || a.im != a.im;
    bool above = a.re > b.re || (a.re == b.re && a.im > b.im);
    return nan || above ? a : b;
  }
  static MLX_INLINE Vec<float> meet(Vec<float> a, Vec<float> b) {
    return maximum(a, b);
  }
};

struct Min {
  template <typename T>
  static MLX_INLINE T meet(T a, T b) {
    return a < b || a != a ? a : b;
  }
  static MLX_INLINE Complex meet(Complex a, Complex b) {
    bool nan = a.re != a.re || a.im != a.im;
    bool below = a.re < b.re || (a.re == b.re && a.im < b.im);
    return nan || below ? a : b;
  }
  static MLX_INLINE Vec<float> meet(Vec<float> a, Vec<float> b) {
    return minimum(a, b);
  }
};

template <typename Op, typename T>
MLX_INLINE void meet_one(T* dst, const T* src) {
  if constexpr (is_half<T>) {
    auto x = load_partial_as<float>(dst, 1);
    auto y = load_partial_as<float>(src, 1);
    store_partial_as(Op::meet(x, y), dst, 1);
  } else {
    *dst = Op::meet(*dst, *src);
  }
}

template <typename Op, typename T>
MLX_INLINE void dense_row(
    T* __restrict dst, const T* __restrict src, int64_t n) {
  if constexpr (is_half<T>) {
    constexpr int64_t kLanes = Vec<float>::size;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      auto x = load_as<float>(dst + i);
      auto y = load_as<float>(src + i);
      store_as(Op::meet(x, y), dst + i);
    }
    if (i < n) {
      auto x = load_partial_as<float>(dst + i, n - i);
      auto y = load_partial_as<float>(src + i, n - i);
      store_partial_as(Op::meet(x, y), dst + i, n - i);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      dst[i] = Op::meet(dst[i], src[i]);
    }
  }
}

template <typename Op, typename T>
void row(void* to, int64_t ds, const void* from, int64_t ss, int64_t n) {
  T* dst = static_cast<T*>(to);
  const T* src = static_cast<const T*>(from);
  if (ds == 1 && ss == 1) {
    dense_row<Op>(dst, src, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    meet_one<Op>(dst + i * ds, src + i * ss);
  }
}

template <typename Op, typename T>
void at(
    void* dst,
    const int64_t* to,
    const void* src,
    const int64_t* from,
    int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    meet_one<Op>(
        static_cast<T*>(dst) + to[i], static_cast<const T*>(src) + from[i]);
  }
}

template <typename Op, typename T>
MLX_INLINE Combine both() {
  return {&row<Op, T>, &at<Op, T>};
}

template <typename T>
Combine accumulating(Accumulate mode) {
  switch (mode) {
    case Accumulate::sum:
      return both<Sum, T>();
    case Accumulate::prod:
      return both<Prod, T>();
    case Accumulate::max:
      return both<Max, T>();
    default:
      return both<Min, T>();
  }
}

Combine replacing(size_t size) {
  switch (size) {
    case 1:
      return both<Replace, uint8_t>();
    case 2:
      return both<Replace, uint16_t>();
    case 4:
      return both<Replace, uint32_t>();
    default:
      return both<Replace, uint64_t>();
  }
}

// On bool, sum is "or" and prod is "and".
Combine logical(Accumulate mode) {
  bool any = mode == Accumulate::sum || mode == Accumulate::max;
  return any ? both<Max, uint8_t>() : both<Min, uint8_t>();
}

}  // namespace

Combine find_combine(Accumulate mode, Dtype dtype) {
  if (mode == Accumulate::none) {
    return replacing(dtype.size());
  }
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return logical(mode);
    case Dtype::Val::uint8:
      return accumulating<uint8_t>(mode);
    case Dtype::Val::uint16:
      return accumulating<uint16_t>(mode);
    case Dtype::Val::uint32:
      return accumulating<uint32_t>(mode);
    case Dtype::Val::uint64:
      return accumulating<uint64_t>(mode);
    case Dtype::Val::int8:
      return accumulating<int8_t>(mode);
    case Dtype::Val::int16:
      return accumulating<int16_t>(mode);
    case Dtype::Val::int32:
      return accumulating<int32_t>(mode);
    case Dtype::Val::int64:
      return accumulating<int64_t>(mode);
    case Dtype::Val::float16:
      return accumulating<float16_t>(mode);
    case Dtype::Val::bfloat16:
      return accumulating<bfloat16_t>(mode);
    case Dtype::Val::float32:
      return accumulating<float>(mode);
    case Dtype::Val::float64:
      return accumulating<double>(mode);
    default:
      return accumulating<Complex>(mode);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
