// The two kernels of reductions, for one combination and type of element. Both
// read each element once, 16 bytes a thread with four of these in flight: the
// limit is read bandwidth.
//
// Op has, beside what combine.cuh says, `Accumulator<T>`, `take(x)`, which
// makes an element one, and `finish`, which makes a result of one.
#pragma once

#include "backend/cuda/device/combine.cuh"
#include "backend/cuda/device/row.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/reduce_pass.h"

namespace mlx::core::cuda {

template <typename A>
__device__ __forceinline__ void put_result(
    const ReduceArgs& a, int64_t at, A x) {
  if constexpr (std::is_same_v<A, float>) {
    if (a.out_type == ReduceArgs::float16) {
      static_cast<half*>(a.out)[at] = convert<half>(x);
      return;
    }
    if (a.out_type == ReduceArgs::bfloat16) {
      static_cast<bhalf*>(a.out)[at] = convert<bhalf>(x);
      return;
    }
  }
  static_cast<A*>(a.out)[at] = x;
}

template <int N, typename T, typename Op, typename A>
__device__ __forceinline__ void take_pack(
    const Op& op, const Pack<T, N>& pack, A* acc) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    acc[j] = op(acc[j], op.take(pack[j]));
  }
}

/// Combines steps begin, begin + stride, ... before `end` into acc[0 ... N).
template <int N, typename T, typename Op, typename A>
__device__ __forceinline__ void walk_steps(
    const Op& op,
    const T* x,
    const WalkAxes& axes,
    int64_t begin,
    int64_t end,
    int64_t stride,
    A* acc) {
  constexpr int kInFlight = 4;
  int64_t i = begin;
  if (axes.ndim == 1) {
    const T* from = x + begin * axes.strides[0];
    int64_t between = stride * axes.strides[0];
    for (; i + (kInFlight - 1) * stride < end; i += kInFlight * stride) {
      Pack<T, N> packs[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        packs[k] = load_pack<N>(from);
        from += between;
      }
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        take_pack<N>(op, packs[k], acc);
      }
    }
  }
#pragma unroll 1
  for (; i < end; i += stride) {
    take_pack<N>(op, load_pack<N>(x + axes.at(i)), acc);
  }
}

/// blockDim.x threads share a row, blockDim.y rows a block.
template <typename Op, typename T>
__global__ void __launch_bounds__(kReduceThreads) reduce_rows(ReduceArgs a) {
  using A = typename Op::template Accumulator<T>;
  constexpr int N = pack_size_v<T>;
  __shared__ A shared[64];
  RowCombiner<A> combine(shared);
  Op op(a.is_all);
  A neutral = op.template neutral<A>();
  A acc[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    acc[j] = neutral;
  }
  int64_t result = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (result < a.results) {
    const T* x = static_cast<const T*>(a.x) + a.kept.at(result);
    int64_t begin = blockIdx.y * a.steps_of_part;
    int64_t end = begin + a.steps_of_part;
    end = end < a.steps ? end : a.steps;
    begin += threadIdx.x;
    if (a.packed) {
      walk_steps<N>(op, x, a.reduced, begin, end, blockDim.x, acc);
      if (blockIdx.y == 0) {
        for (int i = threadIdx.x; i < a.tail; i += blockDim.x) {
          acc[0] = op(acc[0], op.take(x[a.steps * N + i]));
        }
      }
    } else {
      walk_steps<1>(op, x, a.reduced, begin, end, blockDim.x, acc);
    }
  }
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int j = 0; j < half; ++j) {
      acc[j] = op(acc[j], acc[j + half]);
    }
  }
  A total = combine(acc[0], neutral, op);
  if (threadIdx.x == 0 && result < a.results) {
    put_result(a, result * gridDim.y + blockIdx.y, op.finish(total));
  }
}

/// Neighbouring threads have neighbouring columns; 2^y_bits threads share
/// these and meet in shared memory at the end. Where there are few columns,
/// a block has several results of `kept`.
template <typename Op, typename T>
__global__ void __launch_bounds__(kColumnThreads) reduce_columns(ReduceArgs a) {
  using A = typename Op::template Accumulator<T>;
  constexpr int N = pack_size_v<T>;
  __shared__ A shared[N][kColumnThreads];
  Op op(a.is_all);
  A acc[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    acc[j] = op.template neutral<A>();
  }
  int thread = static_cast<int>(threadIdx.x);
  int width = 1 << a.x_bits;
  int lanes = 1 << a.y_bits;
  int lane = (thread >> a.x_bits) & (lanes - 1);
  int64_t unit = blockIdx.x % a.column_blocks * width + (thread & (width - 1));
  int64_t in_block = thread >> (a.x_bits + a.y_bits);
  int64_t result =
      blockIdx.x / a.column_blocks * (kColumnThreads >> (a.x_bits + a.y_bits)) +
      in_block;
  bool is_active = unit < a.column_units && result < a.results;
  if (is_active) {
    const T* x =
        static_cast<const T*>(a.x) + a.kept.at(result) + unit * a.column_stride;
    int64_t begin = blockIdx.y * a.steps_of_part;
    int64_t end = begin + a.steps_of_part;
    end = end < a.steps ? end : a.steps;
    if (a.packed) {
      walk_steps<N>(op, x, a.reduced, begin + lane, end, lanes, acc);
    } else {
      walk_steps<1>(op, x, a.reduced, begin + lane, end, lanes, acc);
    }
  }
  int count = a.packed ? N : 1;
  for (int half = lanes / 2; half > 0; half /= 2) {
    // The upper half hands over to the lower.
    if (lane >= half && lane < 2 * half) {
#pragma unroll
      for (int j = 0; j < N; ++j) {
        if (j < count) {
          shared[j][thread] = acc[j];
        }
      }
    }
    __syncthreads();
    if (lane < half) {
#pragma unroll
      for (int j = 0; j < N; ++j) {
        if (j < count) {
          acc[j] = op(acc[j], shared[j][thread + half * width]);
        }
      }
    }
  }
  if (is_active && lane == 0) {
    int64_t at = (result * gridDim.y + blockIdx.y) * a.columns + unit * count;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (j < count) {
        put_result(a, at + j, op.finish(acc[j]));
      }
    }
  }
}

template <typename Op, typename T>
void launch_pass(const ReducePass& pass, Encoder& e) {
  auto* kernel = pass.is_rows ? &reduce_rows<Op, T> : &reduce_columns<Op, T>;
  e.launch(kernel, pass.grid, pass.block, 0, pass.args);
}

/// Sums and products: small integers in 32 bits, all integers without sign,
/// which is the same modulo a power of two.
template <typename Combine>
struct Arithmetic : Combine {
  template <typename T>
  using Accumulator = std::conditional_t<
      is_half_v<T>,
      float,
      std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, T>>;

  explicit __device__ __forceinline__ Arithmetic(bool) {}
  template <typename T>
  __device__ __forceinline__ Accumulator<T> take(T x) const {
    return static_cast<Accumulator<T>>(to_compute(x));
  }
  template <typename A>
  __device__ __forceinline__ A finish(A x) const {
    return x;
  }
};

template <typename Combine>
void arithmetic_pass(const ReducePass& pass, Dtype dtype, Encoder& e) {
  using Op = Arithmetic<Combine>;
  switch (dtype.val()) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return launch_pass<Op, uint8_t>(pass, e);
    case Dtype::Val::int8:
      return launch_pass<Op, int8_t>(pass, e);
    case Dtype::Val::uint16:
      return launch_pass<Op, uint16_t>(pass, e);
    case Dtype::Val::int16:
      return launch_pass<Op, int16_t>(pass, e);
    case Dtype::Val::uint32:
    case Dtype::Val::int32:
      return launch_pass<Op, uint32_t>(pass, e);
    case Dtype::Val::uint64:
    case Dtype::Val::int64:
      return launch_pass<Op, uint64_t>(pass, e);
    case Dtype::Val::float16:
      return launch_pass<Op, half>(pass, e);
    case Dtype::Val::bfloat16:
      return launch_pass<Op, bhalf>(pass, e);
    case Dtype::Val::float32:
      return launch_pass<Op, float>(pass, e);
    case Dtype::Val::float64:
      return launch_pass<Op, double>(pass, e);
    default:
      return launch_pass<Op, complex64>(pass, e);
  }
}

/// Maxima and minima stay in the elements' type, halves in float.
template <typename Combine>
struct Extreme : Combine {
  template <typename T>
  using Accumulator = compute_t<T>;

  explicit __device__ __forceinline__ Extreme(bool) {}
  template <typename T>
  __device__ __forceinline__ compute_t<T> take(T x) const {
    return to_compute(x);
  }
  template <typename A>
  __device__ __forceinline__ A finish(A x) const {
    return x;
  }
};

template <typename Combine>
void extreme_pass(const ReducePass& pass, Dtype dtype, Encoder& e) {
  visit_type(dtype == bool_ ? uint8 : dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      launch_pass<Extreme<Combine>, T>(pass, e);
    }
  });
}

}  // namespace mlx::core::cuda
