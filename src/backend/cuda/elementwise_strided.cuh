// The kernel for operands of any strides: broadcasts, slices, rows of odd
// length. A thread makes one pack of up to 16 bytes of the output. Operands
// whose rows allow it are read by packs too; others element by element, which
// caches serve where they are broadcast. Rows shorter than a pack, and what
// fills no pack, are located element by element.
#pragma once

#include "backend/cuda/elementwise_kernel.cuh"

namespace mlx::core::cuda {

namespace detail {

/// Where row number `row` (all axes but the last) begins in each operand.
template <int arity, typename Index>
__device__ __forceinline__ void locate_row(
    const StridedAxes<arity>& axes, Index row, int64_t (&offset)[arity]) {
#pragma unroll
  for (int k = 0; k < arity; ++k) {
    offset[k] = 0;
  }
#pragma unroll 1
  for (int i = axes.ndim - 2; i >= 0; --i) {
    Index outer;
    if constexpr (sizeof(Index) == 4) {
      outer = axes.sizes[i].quotient(row);
    } else {
      outer = row / axes.sizes[i].divisor;
    }
    auto at = static_cast<int64_t>(row - outer * axes.sizes[i].divisor);
    row = outer;
#pragma unroll
    for (int k = 0; k < arity; ++k) {
      offset[k] += at * axes.strides[k][i];
    }
  }
}

/// Where an element is: the beginning of its row, and its number there.
template <int arity>
struct ElementPlace {
  int64_t row[arity];
  int64_t next[arity];  // the row after it, where wanted
  int64_t column;
  int64_t left;  // elements of the row from here on

  template <typename Index>
  __device__ __forceinline__ void find(
      const StridedArgs<arity>& args, Index at, bool wants_next) {
    const StridedAxes<arity>& axes = args.axes;
    uint32_t length = axes.sizes[axes.ndim - 1].divisor;
    Index number;
    if constexpr (sizeof(Index) == 4) {
      number = axes.sizes[axes.ndim - 1].quotient(at);
    } else {
      number = at / length;
    }
    column = static_cast<int64_t>(at - number * length);
    left = length - column;
    locate_row(axes, number, row);
    if (wants_next) {
      locate_row(axes, number + 1, next);
    }
  }
};

template <int arity>
__device__ __noinline__ void find_wide(
    const StridedArgs<arity>& args,
    size_t at,
    bool wants_next,
    ElementPlace<arity>& place) {
  place.find(args, at, wants_next);
}

template <int arity>
__device__ __forceinline__ ElementPlace<arity> find_place(
    const StridedArgs<arity>& args, size_t at, bool wants_next) {
  ElementPlace<arity> place;
  if (args.axes.ndim == 1) {
    place.column = static_cast<int64_t>(at);
    place.left = static_cast<int64_t>(args.size - at);
#pragma unroll
    for (int k = 0; k < arity; ++k) {
      place.row[k] = place.next[k] = 0;
    }
  } else if (!args.wide) {
    place.find(args, static_cast<uint32_t>(at), wants_next);
  } else {
    ElementPlace<arity> found;  // its address is taken, place's is not
    find_wide(args, at, wants_next, found);
    place = found;
  }
  return place;
}

/// Reads of operand k.
template <int k, typename T, int N>
struct StridedOperand {
  Held<T, N> held;

  template <int arity>
  static __device__ __forceinline__ T
  one(const StridedArgs<arity>& args, const ElementPlace<arity>& place) {
    if (args.read[k] == OperandRead::number) {
      return number_in<T>(args.immediate[k]);
    }
    int64_t stride = args.axes.strides[k][args.axes.ndim - 1];
    const T* from = static_cast<const T*>(args.from[k]);
    return from[place.row[k] + place.column * stride];
  }
  template <int arity>
  __device__ __forceinline__ void read(
      const StridedArgs<arity>& args, const ElementPlace<arity>& place) {
    if (args.read[k] == OperandRead::number) {
      held.fill(number_in<T>(args.immediate[k]));
      return;
    }
    int64_t stride = args.axes.strides[k][args.axes.ndim - 1];
    const T* row = static_cast<const T*>(args.from[k]) + place.row[k];
    const T* from = row + place.column * stride;
    if (args.read[k] == OperandRead::pack) {
      held.load(from);
    } else if (args.read[k] == OperandRead::splat) {
      held.fill(*from);
    } else {
      // As if the next row went on from here.
      const T* after = static_cast<const T*>(args.from[k]) + place.next[k] -
                       place.left * stride;
      Pack<T, N> elements;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        elements[j] = (j < place.left ? from : after)[j * stride];
      }
      held.set(elements);
    }
  }
};

template <typename Row, int N>
struct StridedValues {
  using Args = StridedArgs<Row::arity>;
  using Place = ElementPlace<Row::arity>;
  using A = StridedOperand<0, typename Row::First, N>;
  using B = StridedOperand<1, typename Row::Other, N>;
  using C = StridedOperand<2, typename Row::Other, N>;

  static __device__ __forceinline__ Pack<typename Row::Result, N> pack(
      const Args& args, const Place& place) {
    A a;
    a.read(args, place);
    if constexpr (Row::arity == 1) {
      return results<Row, N>(a.held.get());
    } else {
      B b;
      b.read(args, place);
      if constexpr (Row::arity == 2) {
        return results<Row, N>(a.held.get(), b.held.get());
      } else {
        C c;
        c.read(args, place);
        return results<Row, N>(a.held.get(), b.held.get(), c.held.get());
      }
    }
  }
};

/// Operands of single elements, so that several can be in flight.
template <typename Row>
struct StridedElement {
  using Args = StridedArgs<Row::arity>;
  typename Row::First a;
  typename Row::Other b, c;

  __device__ __forceinline__ void read(const Args& args, size_t at) {
    using Values = StridedValues<Row, 1>;
    auto place = find_place(args, at, false);
    a = Values::A::one(args, place);
    if constexpr (Row::arity > 1) {
      b = Values::B::one(args, place);
    }
    if constexpr (Row::arity > 2) {
      c = Values::C::one(args, place);
    }
  }
  __device__ __forceinline__ typename Row::Result result() const {
    if constexpr (Row::arity == 1) {
      return Row::of(a);
    } else if constexpr (Row::arity == 2) {
      return Row::of(a, b);
    } else {
      return Row::of(a, b, c);
    }
  }
};

template <typename Row>
__global__ void __launch_bounds__(kElementwiseThreads, 4)
    elementwise_strided(const __grid_constant__ StridedArgs<Row::arity> args) {
  constexpr int N = Row::pack, group = Row::group;
  constexpr int threads = kElementwiseThreads;
  auto* to = static_cast<typename Row::Result*>(args.to);
  size_t block = static_cast<size_t>(blockIdx.x) * (threads * N);
  size_t end = block + threads * N;
  end = end < args.size ? end : args.size;
  size_t at = block + threadIdx.x;

  if (args.in_packs) {
    size_t begin = block + threadIdx.x * N;
    if (begin + N <= args.size) {
      auto place = find_place(args, begin, args.any_pieces);
      store_pack(to + begin, StridedValues<Row, N>::pack(args, place));
    }
    if (end != args.size) {
      return;
    }
    at = args.size - args.size % N + threadIdx.x;  // what fills no pack
  }

#pragma unroll 1
  for (; at < end; at += threads * group) {
    StridedElement<Row> in[group];
#pragma unroll
    for (int j = 0; j < group; ++j) {
      if (at + j * threads < end) {
        in[j].read(args, at + j * threads);
      }
    }
#pragma unroll
    for (int j = 0; j < group; ++j) {
      if (at + j * threads < end) {
        to[at + j * threads] = in[j].result();
      }
    }
  }
}

}  // namespace detail

}  // namespace mlx::core::cuda
