// The last step of a product: out = alpha * sums + beta * c, converted to the
// type of the result. Shared by packed, small and skinny products.
#pragma once

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

/// c as vectors; complex numbers lie as two floats side by side.
template <typename T, typename Out>
MLX_INLINE Vec<T> load_c(
    const GemmEpilogue& e, int64_t row, int64_t col, int64_t lanes) {
  const int64_t parts = e.type == Dtype::Val::complex64 ? 2 : 1;
  const Out* c = static_cast<const Out*>(e.c) + row * e.c_row_stride * parts;
  if (e.c_col_stride == 1) {
    return lanes == Vec<T>::size ? load_as<T>(c + col)
                                 : load_partial_as<T>(c + col, size_t(lanes));
  }
  Out gathered[Vec<T>::size];
  __builtin_memset(&gathered, 0, sizeof(gathered));
  for (int64_t i = 0; i < lanes; ++i) {
    int64_t at = (col + i) / parts * e.c_col_stride * parts + (col + i) % parts;
    __builtin_memcpy(&gathered[i], c + at, sizeof(Out));
  }
  return load_as<T>(gathered);
}

template <typename T, typename Out>
MLX_INLINE void finish_as(
    const T* sums,
    int64_t stride,
    int64_t rows,
    int64_t cols,
    const GemmEpilogue& e,
    int64_t row,
    int64_t col) {
  using V = Vec<T>;
  for (int64_t i = 0; i < rows; ++i) {
    Out* out = static_cast<Out*>(e.out) + (row + i) * e.out_stride + col;
    for (int64_t j = 0; j < cols; j += V::size) {
      int64_t lanes = cols - j < V::size ? cols - j : V::size;
      const T* from = sums + i * stride + j;
      V x = lanes == V::size ? V::load(from)
                             : V::load_partial(from, size_t(lanes));
      x *= V(T(e.alpha));
      if (e.beta != 0) {
        x = fma(V(T(e.beta)), load_c<T, Out>(e, row + i, col + j, lanes), x);
      }
      if (lanes == V::size) {
        store_as(x, out + j);
      } else {
        store_partial_as(x, out + j, size_t(lanes));
      }
    }
  }
}

/// out[row:, col:] = alpha * sums[0:rows, 0:cols] + beta * c.
template <typename T>
static void finish(
    const T* sums,
    int64_t stride,
    int64_t rows,
    int64_t cols,
    const GemmEpilogue& e,
    int64_t row,
    int64_t col) {
  if constexpr (sizeof(T) == sizeof(double)) {
    finish_as<T, double>(sums, stride, rows, cols, e, row, col);
  } else if (e.type == Dtype::Val::float16) {
    finish_as<T, float16_t>(sums, stride, rows, cols, e, row, col);
  } else if (e.type == Dtype::Val::bfloat16) {
    finish_as<T, bfloat16_t>(sums, stride, rows, cols, e, row, col);
  } else {
    finish_as<T, float>(sums, stride, rows, cols, e, row, col);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
