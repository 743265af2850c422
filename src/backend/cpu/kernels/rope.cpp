// Rows of one token: the angles stay in the first cache while every head
// turns by them. Memory-bound: each feature is read and written once.
#include "backend/cpu/kernels/rope.h"

#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename T>
inline void rotate_halves(const RopeRows& a, const T* x, T* y) {
  using F = Vec<float>;
  size_t i = 0;
  for (; i + F::size <= a.half; i += F::size) {
    F c = F::load(a.cosines + i);
    F s = F::load(a.sines + i);
    F p = load_as<float>(x + i);
    F q = load_as<float>(x + a.half + i);
    store_as(p * c - q * s, y + i);
    store_as(p * s + q * c, y + a.half + i);
  }
  for (; i < a.half; ++i) {
    float p = static_cast<float>(x[i]);
    float q = static_cast<float>(x[a.half + i]);
    y[i] = T(p * a.cosines[i] - q * a.sines[i]);
    y[a.half + i] = T(p * a.sines[i] + q * a.cosines[i]);
  }
}

template <typename T>
inline void rotate_neighbours(const RopeRows& a, const T* x, T* y) {
  for (size_t i = 0; i < a.half; ++i) {
    float p = static_cast<float>(x[2 * i]);
    float q = static_cast<float>(x[2 * i + 1]);
    y[2 * i] = T(p * a.cosines[i] - q * a.sines[i]);
    y[2 * i + 1] = T(p * a.sines[i] + q * a.cosines[i]);
  }
}

template <typename T>
void rotate_rows(const RopeRows& a) {
  const T* x = static_cast<const T*>(a.in);
  T* y = static_cast<T*>(a.out);
  for (size_t r = 0; r < a.rows; ++r) {
    if (a.traditional) {
      rotate_neighbours(a, x, y);
    } else {
      rotate_halves(a, x, y);
    }
    for (size_t i = 2 * a.half; i < a.features; ++i) {
      y[i] = x[i];
    }
    x += a.in_stride;
    y += a.out_stride;
  }
}

// Angles are float32, so float64 needs no more than this.
void rotate_rows_double(const RopeRows& a) {
  const double* x = static_cast<const double*>(a.in);
  double* y = static_cast<double*>(a.out);
  size_t step = a.traditional ? 2 : 1;
  size_t partner = a.traditional ? 1 : a.half;
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t i = 0; i < a.half; ++i) {
      double p = x[step * i];
      double q = x[step * i + partner];
      double c = a.cosines[i];
      double s = a.sines[i];
      y[step * i] = p * c - q * s;
      y[step * i + partner] = p * s + q * c;
    }
    for (size_t i = 2 * a.half; i < a.features; ++i) {
      y[i] = x[i];
    }
    x += a.in_stride;
    y += a.out_stride;
  }
}

}  // namespace

void rope_rows(const RopeRows& args) {
  switch (args.dtype.val()) {
    case Dtype::Val::float16:
      return rotate_rows<float16_t>(args);
    case Dtype::Val::bfloat16:
      return rotate_rows<bfloat16_t>(args);
    case Dtype::Val::float64:
      return rotate_rows_double(args);
    default:
      return rotate_rows<float>(args);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
