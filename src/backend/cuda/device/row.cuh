// A row in the registers of the threads that share it (threadIdx.x of
// blockDim.x; threadIdx.y is another row).
#pragma once

#include <cstring>

#include "backend/cuda/device/row_combine.cuh"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

/// Two values of T as one word, and back. Halves take one instruction.
template <typename T>
__device__ __forceinline__ uint32_t join_halves(float low, float high) {
  uint32_t word;
  if constexpr (std::is_same_v<T, bhalf>) {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    memcpy(&word, &both, 4);
  } else {
    __half2 both = __floats2half2_rn(low, high);
    memcpy(&word, &both, 4);
  }
  return word;
}
template <typename T>
__device__ __forceinline__ float2 split_halves(uint32_t word) {
  if constexpr (std::is_same_v<T, bhalf>) {
    return make_float2(
        __uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
  } else {
    __half2 both;
    memcpy(&both, &word, 4);
    return __half22float2(both);
  }
}

/// 16 bytes of a row, as words: a register holds two halves.
template <typename T>
struct RowPack {
  using A = compute_t<T>;
  static constexpr int N = pack_size_v<T>;
  uint32_t words[4];

  static __device__ __forceinline__ RowPack of(A x) {
    A all[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      all[i] = x;
    }
    RowPack pack;
    pack.join(all);
    return pack;
  }
  __device__ __forceinline__ void load(const T* from) {
    uint4 v = *reinterpret_cast<const uint4*>(from);
    words[0] = v.x;
    words[1] = v.y;
    words[2] = v.z;
    words[3] = v.w;
  }
  __device__ __forceinline__ void store(T* to) const {
    *reinterpret_cast<uint4*>(to) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
  __device__ __forceinline__ void split(A (&to)[N]) const {
    if constexpr (is_half_v<T>) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float2 both = split_halves<T>(words[i]);
        to[2 * i] = both.x;
        to[2 * i + 1] = both.y;
      }
    } else {
      memcpy(to, words, 16);
    }
  }
  __device__ __forceinline__ void join(const A (&from)[N]) {
    if constexpr (is_half_v<T>) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words[i] = join_halves<T>(from[2 * i], from[2 * i + 1]);
      }
    } else {
      memcpy(words, from, 16);
    }
  }
};

/// K packs a thread, neighbouring threads with neighbouring packs. Packs that
/// the row has not keep what they were filled with, so that nothing need
/// branch on them.
template <typename T, int K>
struct HeldRow {
  using A = compute_t<T>;
  static constexpr int N = pack_size_v<T>;
  RowPack<T> packs[K];

  static __device__ __forceinline__ int place(int k) {
    return (k * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) *
           N;
  }
  __device__ __forceinline__ void fill(A x) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      packs[k] = RowPack<T>::of(x);
    }
  }
  /// Tells the compiler that the words may have changed, lest it hold all
  /// elements apart in registers from one use to the next.
  __device__ __forceinline__ void stay_joined() {
#pragma unroll
    for (int i = 0; i < 4 * K; ++i) {
      asm volatile("" : "+r"(packs[i / 4].words[i % 4]));
    }
  }
  __device__ __forceinline__ void load(const T* row, int n) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (place(k) < n) {
        packs[k].load(row + place(k));
      }
    }
  }
};

/// A step of a row that is walked: N elements a thread, which begin at
/// multiples of 16 bytes or, where rows are not packed, are a block's width
/// apart.
template <typename T, bool packed>
struct RowStep {
  using A = compute_t<T>;
  static constexpr int N = pack_size_v<T>;
  A values[N];

  static __device__ __forceinline__ int size() {
    return N * static_cast<int>(blockDim.x);
  }
  static __device__ __forceinline__ int place(int i) {
    int width = static_cast<int>(blockDim.x);
    int thread = static_cast<int>(threadIdx.x);
    return packed ? thread * N + i : i * width + thread;
  }
  /// Elements from n on become x.
  __device__ __forceinline__ void load(const T* row, int n, A x) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] = x;
    }
    if constexpr (packed) {
      if (place(0) < n) {
        RowPack<T> pack;
        pack.load(row + place(0));
        pack.split(values);
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (place(i) < n) {
          values[i] = to_compute(row[place(i)]);
        }
      }
    }
  }
  __device__ __forceinline__ void store(T* row, int n) const {
    if constexpr (packed) {
      if (place(0) < n) {
        RowPack<T> pack;
        pack.join(values);
        pack.store(row + place(0));
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (place(i) < n) {
          row[place(i)] = convert<T>(values[i]);
        }
      }
    }
  }
};

}  // namespace mlx::core::cuda
