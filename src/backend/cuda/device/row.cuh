// A row in the registers of the threads that share it (threadIdx.x of
// blockDim.x; threadIdx.y is another row), and the combination of one value of
// each of them.
#pragma once

#include "backend/cuda/device/shuffle.cuh"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

/// K packs of 16 bytes a thread, as words: a register holds two halves. Packed
/// rows are read pack by pack, others element by element; neighbouring threads
/// read neighbours either way.
template <typename T, int K, bool packed = true>
struct HeldRow {
  using A = compute_t<T>;
  static constexpr int N = pack_size_v<T>;
  uint32_t words[4 * K];

  /// Elements that the row's threads hold together.
  static __device__ __forceinline__ int capacity() {
    return K * N * static_cast<int>(blockDim.x);
  }
  /// Where in the row this thread's element i is.
  static __device__ __forceinline__ int place(int i) {
    int width = static_cast<int>(blockDim.x);
    int thread = static_cast<int>(threadIdx.x);
    return packed ? (i / N * width + thread) * N + i % N : i * width + thread;
  }

  /// Elements from n on are left as they are.
  __device__ __forceinline__ void load(const T* row, int n) {
    if constexpr (packed) {
#pragma unroll
      for (int k = 0; k < K; ++k) {
        if (place(k * N) < n) {
          uint4 pack = *reinterpret_cast<const uint4*>(row + place(k * N));
          words[4 * k] = pack.x;
          words[4 * k + 1] = pack.y;
          words[4 * k + 2] = pack.z;
          words[4 * k + 3] = pack.w;
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < K * N; ++i) {
        if (place(i) < n) {
          put(i, row[place(i)]);
        }
      }
    }
  }
  __device__ __forceinline__ void store(T* row, int n) const {
    if constexpr (packed) {
#pragma unroll
      for (int k = 0; k < K; ++k) {
        if (place(k * N) < n) {
          *reinterpret_cast<uint4*>(row + place(k * N)) = make_uint4(
              words[4 * k],
              words[4 * k + 1],
              words[4 * k + 2],
              words[4 * k + 3]);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < K * N; ++i) {
        if (place(i) < n) {
          row[place(i)] = convert<T>(get(i));
        }
      }
    }
  }

  /// f(x, i) for each of the row's first n elements that this thread holds,
  /// i = 0 ... K * N - 1.
  template <typename F>
  __device__ __forceinline__ void each(int n, F&& f) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (!packed || place(k * N) < n) {
#pragma unroll
        for (int i = k * N; i < (k + 1) * N; ++i) {
          if (packed || place(i) < n) {
            f(get(i), i);
          }
        }
      }
    }
  }

  __device__ __forceinline__ A get(int i) const {
    if constexpr (std::is_same_v<T, bhalf>) {
      uint32_t word = words[i / 2];
      return __uint_as_float(i % 2 ? word & 0xffff0000u : word << 16);
    } else if constexpr (std::is_same_v<T, half>) {
      uint32_t word = words[i / 2];
      auto bits = static_cast<unsigned short>(i % 2 ? word >> 16 : word);
      return __half2float(__ushort_as_half(bits));
    } else if constexpr (std::is_same_v<T, double>) {
      return __hiloint2double(
          static_cast<int>(words[2 * i + 1]), static_cast<int>(words[2 * i]));
    } else {
      return __uint_as_float(words[i]);
    }
  }
  __device__ __forceinline__ void set(int i, A x) {
    put(i, convert<T>(x));
  }

 private:
  __device__ __forceinline__ void put_bits(int i, unsigned short bits) {
    uint32_t& word = words[i / 2];
    word = i % 2 ? (word & 0xffffu) | (static_cast<uint32_t>(bits) << 16)
                 : (word & 0xffff0000u) | bits;
  }
  __device__ __forceinline__ void put(int i, T x) {
    if constexpr (std::is_same_v<T, bhalf>) {
      put_bits(i, __bfloat16_as_ushort(x));
    } else if constexpr (std::is_same_v<T, half>) {
      put_bits(i, __half_as_ushort(x));
    } else if constexpr (std::is_same_v<T, double>) {
      words[2 * i] = static_cast<uint32_t>(__double2loint(x));
      words[2 * i + 1] = static_cast<uint32_t>(__double2hiint(x));
    } else {
      words[i] = __float_as_uint(x);
    }
  }
};

struct LargerOf {
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return b > a ? b : a;
  }
};
struct SumOf {
  template <typename A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return a + b;
  }
};

/// Combines a value of each of the row's threads; all get the result. All
/// threads of the block must call it. Rows of more than a warp have the block
/// for themselves. Two places in shared memory are used in turn, so that one
/// barrier a combination is enough.
template <typename A>
struct RowCombiner {
  A* shared;  // 64 of them
  int turn = 0;

  explicit __device__ __forceinline__ RowCombiner(A* shared) : shared(shared) {}

  template <typename Op>
  __device__ __forceinline__ A operator()(A x, A neutral, Op op) {
    int width = static_cast<int>(blockDim.x);
    for (int step = width > 32 ? 16 : width / 2; step > 0; step /= 2) {
      x = op(x, shuffle_xor(x, step));
    }
    if (width <= 32) {
      return x;
    }
    A* slots = shared + turn;
    turn ^= 32;
    int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
      slots[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = lane < width / 32 ? slots[lane] : neutral;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      x = op(x, shuffle_xor(x, step));
    }
    return x;
  }
};

}  // namespace mlx::core::cuda
