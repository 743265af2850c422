// Whether all or any elements differ from zero. Only the size of an element
// matters, except that floats have a negative zero. The compiler vectorises
// these loops.
#include "backend/cpu/kernels/reduce_loops.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

struct Half16 {
  uint16_t bits;
};

template <typename T>
MLX_INLINE uint8_t nonzero(T x) {
  return x != T(0);
}
MLX_INLINE uint8_t nonzero(Half16 x) {
  return (x.bits & 0x7fff) != 0;
}

template <bool Any>
MLX_INLINE uint8_t combined(uint8_t a, uint8_t b) {
  return Any ? a | b : a & b;
}

template <bool Any, typename T>
void rows_loop(
    const void* x, int64_t row_stride, size_t rows, size_t n, void* out) {
  const T* from = static_cast<const T*>(x);
  uint8_t* to = static_cast<uint8_t*>(out);
  for (size_t r = 0; r < rows; ++r) {
    const T* row = from + int64_t(r) * row_stride;
    uint8_t total = !Any;
    for (size_t i = 0; i < n; ++i) {
      total = combined<Any>(total, nonzero(row[i]));
    }
    to[r] = total;
  }
}

template <bool Any, typename T>
void columns_loop(
    const void* x, int64_t row_stride, size_t rows, size_t n, void* out) {
  const T* from = static_cast<const T*>(x);
  uint8_t* to = static_cast<uint8_t*>(out);
  __builtin_memset(to, !Any, n);
  for (size_t r = 0; r < rows; ++r) {
    const T* row = from + int64_t(r) * row_stride;
    for (size_t i = 0; i < n; ++i) {
      to[i] = combined<Any>(to[i], nonzero(row[i]));
    }
  }
}

template <bool Any>
ReduceLoops logic_loops(Dtype dtype) {
#define MLX_LOGIC(type) \
  { &rows_loop<Any, type>, &columns_loop<Any, type> }
  if (dtype.val() == Dtype::Val::complex64) {
    return MLX_LOGIC(Complex);
  }
  bool is_float = dtype.val() >= Dtype::Val::float16;
  switch (dtype.size()) {
    case 1:
      return MLX_LOGIC(uint8_t);
    case 2:
      return is_float ? ReduceLoops MLX_LOGIC(Half16)
                      : ReduceLoops MLX_LOGIC(uint16_t);
    case 4:
      return is_float ? ReduceLoops MLX_LOGIC(float)
                      : ReduceLoops MLX_LOGIC(uint32_t);
    default:
      return is_float ? ReduceLoops MLX_LOGIC(double)
                      : ReduceLoops MLX_LOGIC(uint64_t);
  }
#undef MLX_LOGIC
}

}  // namespace

ReduceLoops reduce_logic_loops(bool any, Dtype dtype) {
  return any ? logic_loops<true>(dtype) : logic_loops<false>(dtype);
}

}  // namespace mlx::core::cpu::MLX_ISA
