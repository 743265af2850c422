// Strided elements into and out of a block, and copies past the caches.
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/simd/vec.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename T>
void gather_elements(const T* src, int64_t stride, T* dst, size_t n) {
  if (stride == 1) {
    __builtin_memcpy(dst, src, n * sizeof(T));
    return;
  }
  if (stride == 0) {
    T value = *src;
    for (size_t i = 0; i < n; ++i) {
      dst[i] = value;
    }
    return;
  }
  // Scalar loads: hardware gathers are no faster on the machines at hand.
#pragma GCC unroll 4
  for (size_t i = 0; i < n; ++i) {
    dst[i] = src[static_cast<int64_t>(i) * stride];
  }
}

template <typename T>
void scatter_elements(const T* src, T* dst, int64_t stride, size_t n) {
  if (stride == 1) {
    __builtin_memcpy(dst, src, n * sizeof(T));
    return;
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < n; ++i) {
    dst[static_cast<int64_t>(i) * stride] = src[i];
  }
}

}  // namespace

void gather_block(
    const void* src, int64_t stride, void* dst, size_t n, size_t item_size) {
  if (n == 0) {
    return;
  }
#define MLX_GATHER(T) \
  gather_elements(static_cast<const T*>(src), stride, static_cast<T*>(dst), n)
  switch (item_size) {
    case 1:
      return MLX_GATHER(uint8_t);
    case 2:
      return MLX_GATHER(uint16_t);
    case 4:
      return MLX_GATHER(uint32_t);
    default:
      return MLX_GATHER(uint64_t);
  }
#undef MLX_GATHER
}

void scatter_block(
    const void* src, void* dst, int64_t stride, size_t n, size_t item_size) {
#define MLX_SCATTER(T) \
  scatter_elements(static_cast<const T*>(src), static_cast<T*>(dst), stride, n)
  switch (item_size) {
    case 1:
      return MLX_SCATTER(uint8_t);
    case 2:
      return MLX_SCATTER(uint16_t);
    case 4:
      return MLX_SCATTER(uint32_t);
    default:
      return MLX_SCATTER(uint64_t);
  }
#undef MLX_SCATTER
}

void copy_streaming(const void* src, void* dst, size_t size_bytes) {
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  // Non-temporal stores need aligned addresses.
  size_t head = -reinterpret_cast<uintptr_t>(to) & (kVecBytes - 1);
  if (size_bytes < head + kVecBytes) {
    __builtin_memcpy(to, from, size_bytes);
    return;
  }
  __builtin_memcpy(to, from, head);
  size_t i = head;
  for (; i + kVecBytes <= size_bytes; i += kVecBytes) {
    Vec<int64_t>::RawT v;
    __builtin_memcpy(&v, from + i, kVecBytes);
#if MLX_ISA_LEVEL >= 4
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), (__m512i)v);
#elif MLX_ISA_LEVEL == 3
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), (__m256i)v);
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), (__m128i)v);
#endif
  }
  __builtin_memcpy(to + i, from + i, size_bytes - i);
}

}  // namespace mlx::core::cpu::MLX_ISA
