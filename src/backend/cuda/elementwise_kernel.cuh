// The kernel of elementwise operations and conversions for operands of any
// strides, and what it is launched with. A row says what it does with one
// element of each operand.
//
// A block of 256 threads makes 256 * items neighbouring elements. Where memory
// allows it (every operand's innermost axis has stride 1 or 0 and packs of it
// are aligned) a thread makes packs of up to 16 bytes, the loads of all its
// packs before the first store; else single elements, each located by itself.
// Operands are moved once: bytes read and written are those of the arrays.
#pragma once

#include "backend/cuda/device/index.cuh"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

inline constexpr int kElementwiseThreads = 256;

/// What the kernel is told. Axes are those of the output in row-major order,
/// or one axis where all arrays are walked in the order of memory.
template <int arity>
struct ElementwiseArgs {
  const void* from[arity];
  void* to;
  size_t size;
  uint64_t immediate[arity];
  uint32_t immediates;  // bit k: operand k is the number immediate[k]
  uint32_t splats;      // bit k: operand k is one element for a whole pack
  bool in_packs;
  bool wide;  // more elements than 32 bits count
  StridedAxes<arity> axes;
};

/// What the kernel of elementwise_flat.cuh is told.
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
  void (*function)(ElementwiseArgs<arity>) = nullptr;
  void (*flat)(FlatArgs<arity>) = nullptr;
  int pack = 0;        // elements of one access
  int items = 0;       // elements of one thread
  int flat_items = 0;  // the same of the flat kernel
};

namespace detail {

template <int arity>
__device__ __noinline__ void locate_wide(
    const StridedAxes<arity>& axes, uint64_t at, int64_t (&offset)[arity]) {
  axes.locate(at, offset);
}

template <int arity>
__device__ __forceinline__ void locate(
    const ElementwiseArgs<arity>& args, size_t at, int64_t (&offset)[arity]) {
  if (args.axes.ndim == 1) {
#pragma unroll
    for (int k = 0; k < arity; ++k) {
      offset[k] = static_cast<int64_t>(at) * args.axes.strides[k][0];
    }
  } else if (!args.wide) {
    args.axes.locate(static_cast<uint32_t>(at), offset);
  } else {
    int64_t found[arity];  // its address is taken, offset's is not
    locate_wide(args.axes, at, found);
#pragma unroll
    for (int k = 0; k < arity; ++k) {
      offset[k] = found[k];
    }
  }
}

/// N elements of operand k.
template <int k, typename T, int N>
struct OperandValues {
  T v[N];

  template <int arity>
  __device__ __forceinline__ bool is_immediate(
      const ElementwiseArgs<arity>& args, int j) {
    if ((args.immediates >> k & 1) == 0) {
      return false;
    }
    // Little-endian: the low bytes are the number.
    memcpy(&v[j], &args.immediate[k], sizeof(T));
    return true;
  }
  template <int arity>
  __device__ __forceinline__ void read_pack(
      const ElementwiseArgs<arity>& args, const int64_t (&offset)[arity]) {
    if (!is_immediate(args, 0)) {
      const T* from = static_cast<const T*>(args.from[k]) + offset[k];
      if ((args.splats >> k & 1) == 0) {
        auto pack = load_pack<N>(from);
#pragma unroll
        for (int j = 0; j < N; ++j) {
          v[j] = pack[j];
        }
        return;
      }
      v[0] = *from;
    }
#pragma unroll
    for (int j = 1; j < N; ++j) {
      v[j] = v[0];
    }
  }
  template <int arity>
  __device__ __forceinline__ void read_one(
      const ElementwiseArgs<arity>& args,
      const int64_t (&offset)[arity],
      int j) {
    if (!is_immediate(args, j)) {
      v[j] = static_cast<const T*>(args.from[k])[offset[k]];
    }
  }
};

/// N elements of each operand of a row: the first may have a type of its own.
template <typename Row, int N>
struct RowValues {
  using Args = ElementwiseArgs<Row::arity>;

  OperandValues<0, typename Row::First, N> a;
  OperandValues<1, typename Row::Other, N> b;
  OperandValues<2, typename Row::Other, N> c;

  __device__ __forceinline__ void read_pack(const Args& args, size_t at) {
    int64_t offset[Row::arity];
    locate(args, at, offset);
    a.read_pack(args, offset);
    if constexpr (Row::arity > 1) {
      b.read_pack(args, offset);
    }
    if constexpr (Row::arity > 2) {
      c.read_pack(args, offset);
    }
  }
  __device__ __forceinline__ void read_one(const Args& args, size_t at, int j) {
    int64_t offset[Row::arity];
    locate(args, at, offset);
    a.read_one(args, offset, j);
    if constexpr (Row::arity > 1) {
      b.read_one(args, offset, j);
    }
    if constexpr (Row::arity > 2) {
      c.read_one(args, offset, j);
    }
  }
  __device__ __forceinline__ typename Row::Result result(int j) const {
    if constexpr (Row::arity == 1) {
      return Row::of(a.v[j]);
    } else if constexpr (Row::arity == 2) {
      return Row::of(a.v[j], b.v[j]);
    } else {
      return Row::of(a.v[j], b.v[j], c.v[j]);
    }
  }
};

/// Row::pack elements an access and Row::packs of them a thread; single
/// elements go in groups of Row::group, whose loads are in flight together.
template <typename Row>
__global__ void __launch_bounds__(kElementwiseThreads) elementwise_kernel(
    const __grid_constant__ ElementwiseArgs<Row::arity> args) {
  constexpr int N = Row::pack, packs = Row::packs, group = Row::group;
  constexpr int threads = kElementwiseThreads;
  using Result = typename Row::Result;
  auto* to = static_cast<Result*>(args.to);
  size_t block = static_cast<size_t>(blockIdx.x) * (threads * N * packs);
  size_t at = block + threadIdx.x;
  size_t end = block + threads * N * packs;
  end = end < args.size ? end : args.size;

  if (args.in_packs) {
    RowValues<Row, N> in[packs];
    size_t first = block + threadIdx.x * N;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      size_t begin = first + p * (threads * N);
      if (begin + N <= args.size) {
        in[p].read_pack(args, begin);
      }
    }
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      size_t begin = first + p * (threads * N);
      if (begin + N <= args.size) {
        Pack<Result, N> made;
#pragma unroll
        for (int j = 0; j < N; ++j) {
          made[j] = in[p].result(j);
        }
        store_pack(to + begin, made);
      }
    }
    if (end != args.size) {
      return;
    }
    at = args.size - args.size % N + threadIdx.x;  // what fills no pack
  }

#pragma unroll 1
  for (; at < end; at += threads * group) {
    RowValues<Row, group> in;
#pragma unroll
    for (int j = 0; j < group; ++j) {
      if (at + j * threads < end) {
        in.read_one(args, at + j * threads, j);
      }
    }
#pragma unroll
    for (int j = 0; j < group; ++j) {
      if (at + j * threads < end) {
        to[at + j * threads] = in.result(j);
      }
    }
  }
}

}  // namespace detail

}  // namespace mlx::core::cuda
