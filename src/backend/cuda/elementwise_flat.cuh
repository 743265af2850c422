// The kernel for operands that lie in memory in the order of the output, or
// are one number each: nothing to locate. A thread makes packs of up to 16
// bytes, a block's length apart, and issues the loads of all of them before
// the first use: 16 to 64 bytes a thread with few registers, so that an SM has
// 32 kB or more in flight. Whatever fills no pack is left to the last block.
#pragma once

#include "backend/cuda/elementwise_strided.cuh"

namespace mlx::core::cuda {

namespace detail {

/// How much an operation computes: nothing beside memory, little, much.
enum class Weight { light, medium, heavy };

/// How many packs a thread of the flat kernel makes: one of one operand, which
/// is as fast as a copy (more and longer blocks were 4 % slower), two of more
/// operands; no more code than 32 elements need, fewer where each needs much.
constexpr int flat_packs_of(int arity, int pack, size_t itemsize, Weight w) {
  int packs = arity == 1 ? 1 : 2;
  int elements = w == Weight::light ? 32 : itemsize > 2 ? 8 : 16;
  int fit = elements / pack > 0 ? elements / pack : 1;
  return w == Weight::heavy ? 1 : (packs < fit ? packs : fit);
}

/// How many blocks an SM shall hold at once.
constexpr int flat_blocks_of(int pack, Weight w) {
  return w == Weight::light && pack <= 8 ? 6 : 4;
}

/// All packs that a thread takes of operand k.
template <int k, typename T, int N, int packs>
struct FlatOperand {
  static constexpr int step = kElementwiseThreads * N;
  Held<T, N> held[packs];

  /// What stands in the place of an array.
  template <int arity>
  static __device__ __forceinline__ T number(const FlatArgs<arity>& args) {
    return (args.immediates >> k & 1) != 0
               ? number_in<T>(args.immediate[k])
               : *static_cast<const T*>(args.from[k]);
  }
  template <int arity>
  static __device__ __forceinline__ bool is_number(
      const FlatArgs<arity>& args) {
    return arity > 1 && (args.numbers >> k & 1) != 0;
  }

  /// The packs that begin at `at`, as far as `left` elements reach.
  template <int arity>
  __device__ __forceinline__ void read(
      const FlatArgs<arity>& args, size_t at, int left) {
    if (is_number(args)) {
      T x = number(args);
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        held[p].fill(x);
      }
      return;
    }
    const T* from = static_cast<const T*>(args.from[k]) + at;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (left >= p * step + N) {
        held[p].load(from + p * step);
      }
    }
  }
  template <int arity>
  static __device__ __forceinline__ T
  read_one(const FlatArgs<arity>& args, size_t at) {
    return is_number(args) ? number(args)
                           : static_cast<const T*>(args.from[k])[at];
  }
};

template <typename Row>
struct FlatValues {
  using Args = FlatArgs<Row::arity>;
  template <int k, typename T>
  using Operand = FlatOperand<k, T, Row::pack, Row::flat_packs>;
  using A = Operand<0, typename Row::First>;
  using B = Operand<1, typename Row::Other>;
  using C = Operand<2, typename Row::Other>;
  A a;
  B b;
  C c;

  __device__ __forceinline__ void read(const Args& args, size_t at, int left) {
    a.read(args, at, left);
    if constexpr (Row::arity > 1) {
      b.read(args, at, left);
    }
    if constexpr (Row::arity > 2) {
      c.read(args, at, left);
    }
  }
  __device__ __forceinline__ Pack<typename Row::Result, Row::pack> made(
      int p) const {
    constexpr int N = Row::pack;
    if constexpr (Row::arity == 1) {
      return results<Row, N>(a.held[p].get());
    } else if constexpr (Row::arity == 2) {
      return results<Row, N>(a.held[p].get(), b.held[p].get());
    } else {
      return results<Row, N>(a.held[p].get(), b.held[p].get(), c.held[p].get());
    }
  }
  static __device__ __forceinline__ typename Row::Result one(
      const Args& args, size_t at) {
    if constexpr (Row::arity == 1) {
      return Row::of(A::read_one(args, at));
    } else if constexpr (Row::arity == 2) {
      return Row::of(A::read_one(args, at), B::read_one(args, at));
    } else {
      return Row::of(
          A::read_one(args, at), B::read_one(args, at), C::read_one(args, at));
    }
  }
};

template <typename Row>
__global__ void __launch_bounds__(kElementwiseThreads, Row::flat_blocks)
    elementwise_flat(const __grid_constant__ FlatArgs<Row::arity> args) {
  constexpr int N = Row::pack, packs = Row::flat_packs;
  constexpr int step = kElementwiseThreads * N, tile = step * packs;
  auto* to = static_cast<typename Row::Result*>(args.to);
  size_t begin = static_cast<size_t>(blockIdx.x) * tile;
  // What the block has to do, counted from this thread's first element.
  size_t of_block = args.size - begin;
  int size = static_cast<int>(of_block < tile ? of_block : tile);
  int left = size - static_cast<int>(threadIdx.x) * N;
  size_t at = begin + threadIdx.x * N;

  FlatValues<Row> in;
  in.read(args, at, left);
  to += at;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    auto made = in.made(p);
    if (left >= p * step + N) {
      store_pack(to + p * step, made);
    }
  }
  if (N > 1 && threadIdx.x < size % N) {
    size_t last = begin + size - size % N + threadIdx.x;
    static_cast<typename Row::Result*>(args.to)[last] =
        FlatValues<Row>::one(args, last);
  }
}

}  // namespace detail

template <typename Row>
ElementwiseKernel<Row::arity> elementwise_kernel_of() {
  return {
      &detail::elementwise_strided<Row>,
      &detail::elementwise_flat<Row>,
      Row::pack,
      Row::pack * Row::flat_packs};
}

}  // namespace mlx::core::cuda
