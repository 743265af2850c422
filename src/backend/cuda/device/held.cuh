// Elements of operands on their way through registers, and numbers that travel
// with a launch.
#pragma once

#include <cstring>

#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

namespace detail {

/// N elements in registers. Those of less than 4 bytes stay together in words
/// until they are used, else each would hold a register.
template <typename T, int N>
struct Held {
  static constexpr int bytes = N * sizeof(T);
  using Word = std::conditional_t<
      sizeof(T) >= 4,
      T,
      std::conditional_t<bytes % 4 == 0, uint32_t, uint16_t>>;
  static constexpr int words = bytes / sizeof(Word);
  Pack<Word, words> v;

  __device__ __forceinline__ void load(const T* from) {
    v = load_pack<words>(reinterpret_cast<const Word*>(from));
  }
  __device__ __forceinline__ void set(const Pack<T, N>& elements) {
    memcpy(&v, &elements, sizeof(v));
  }
  __device__ __forceinline__ void fill(T x) {
    constexpr int of_word = sizeof(Word) / sizeof(T);
    Pack<T, of_word> elements;
#pragma unroll
    for (int j = 0; j < of_word; ++j) {
      elements[j] = x;
    }
    Word word;
    memcpy(&word, &elements, sizeof(word));
#pragma unroll
    for (int j = 0; j < words; ++j) {
      v[j] = word;
    }
  }
  __device__ __forceinline__ Pack<T, N> get() const {
    Pack<T, N> elements;
    memcpy(&elements, &v, sizeof(v));
    return elements;
  }
};

/// The low bytes of an immediate are the number.
template <typename T>
__device__ __forceinline__ T number_in(const uint64_t& immediate) {
  T x;
  memcpy(&x, &immediate, sizeof(T));
  return x;
}

}  // namespace detail

}  // namespace mlx::core::cuda
