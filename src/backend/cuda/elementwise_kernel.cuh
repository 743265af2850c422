// What the kernels of elementwise operations and conversions are launched with
// and share. A row says what it does with one element of each operand; it has
// a kernel for operands in the order of the output (elementwise_flat.cuh) and
// one for operands of any strides (elementwise_strided.cuh).
#pragma once

#include "backend/cuda/device/held.cuh"
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
