// What the kernels of elementwise operations and conversions are launched with
// and share. A row says what it does with one element of each operand; it has
// a kernel for operands in the order of the output (elementwise_flat.cuh) and
// one for operands of any strides (elementwise_strided.cuh).
#pragma once

#include "backend/cuda/device/index.cuh"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

inline constexpr int kElementwiseThreads = 256;

/// How the strided kernel reads N elements that are neighbours in the output:
/// one access, one element for all, or each by itself, the row perhaps ending
/// among them.
enum class OperandRead : uint8_t { number, pack, splat, pieces };

/// What the strided kernel is told. Axes are those of the output in row-major
/// order.
template <int arity>
struct StridedArgs {
  const void* from[arity];
  void* to;
  size_t size;
  uint64_t immediate[arity];  // for numbers
  OperandRead read[arity];
  bool in_packs;  // else all elements are located by themselves
  bool any_pieces;
  bool wide;  // more elements than 32 bits count
  StridedAxes<arity> axes;
};

/// What the flat kernel is told.
template <int arity>
struct FlatArgs {
  const void* from[arity];
  void* to;
  size_t size;
  uint64_t immediate[arity];
  uint32_t numbers;     // bit k: operand k is one number
  uint32_t immediates;  // bit k: namely immediate[k]
};

/// Kernels of one row and how they cut the work.
template <int arity>
struct ElementwiseKernel {
  void (*strided)(StridedArgs<arity>) = nullptr;
  void (*flat)(FlatArgs<arity>) = nullptr;
  int pack = 0;        // elements of one access, and of a strided thread
  int flat_items = 0;  // elements of a thread of the flat kernel
};

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

/// A row's results from packs of its operands.
template <typename Row, int N, typename... Packs>
__device__ __forceinline__ Pack<typename Row::Result, N> results(
    const Packs&... operands) {
  Pack<typename Row::Result, N> made;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    made[j] = Row::of(operands[j]...);
  }
  return made;
}

}  // namespace detail

}  // namespace mlx::core::cuda
