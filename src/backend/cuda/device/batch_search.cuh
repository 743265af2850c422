// The entry of a list that finds the first largest or smallest number of a row;
// NaN is beyond all others. As fast as a launch of its own, which one block
// does too.
#pragma once

#include "backend/cuda/batch.h"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

constexpr int kSearchPacks = 4;  // in flight for a thread

/// The largest key so far and where it was.
struct FoundKey {
  float key = 0.0f;
  uint32_t at = ~0u;  // nowhere yet

  __device__ __forceinline__ void add(float other, uint32_t place) {
    bool is_nan = key != key;
    bool is_larger = other != other ? !is_nan : other > key;
    bool is_equal = other != other ? is_nan : other == key;
    bool is_better = is_larger || (is_equal && place < at);
    if (place != ~0u && (at == ~0u || is_better)) {
      key = other;
      at = place;
    }
  }
  __device__ __forceinline__ void join_warp() {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      float other = __shfl_xor_sync(0xffffffffu, key, step);
      uint32_t place = __shfl_xor_sync(0xffffffffu, at, step);
      add(other, place);
    }
  }
};

template <typename T>
__device__ __forceinline__ FoundKey search_row(const BatchEntry& entry) {
  constexpr int N = pack_size_v<T>;
  const BatchEntry::Search& search = entry.search;
  auto* from = static_cast<const T*>(search.from);
  auto* packs = reinterpret_cast<const uint4*>(from);
  uint32_t whole = entry.size / N;
  FoundKey found;
  auto add = [&](const T& x, uint32_t place) {
    float number = to_compute(x);
    found.add(search.largest ? number : -number, place);
  };
  for (uint32_t base = threadIdx.x; base < whole;
       base += kSearchPacks * blockDim.x) {
    uint4 raw[kSearchPacks];
#pragma unroll
    for (int u = 0; u < kSearchPacks; ++u) {
      uint32_t pack = base + u * blockDim.x;
      raw[u] = packs[pack < whole ? pack : base];
    }
#pragma unroll
    for (int u = 0; u < kSearchPacks; ++u) {
      uint32_t pack = base + u * blockDim.x;
      if (pack < whole) {
        Pack<T, N> numbers;
        memcpy(&numbers, &raw[u], 16);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          add(numbers[i], pack * N + i);
        }
      }
    }
  }
  uint32_t last = whole * N + threadIdx.x;
  if (last < entry.size) {
    add(from[last], last);
  }
  return found;
}

__device__ void do_search(const BatchEntry& entry) {
  __shared__ float keys[kNarrowThreads / 32];
  __shared__ uint32_t places[kNarrowThreads / 32];
  FoundKey found;
  switch (static_cast<Dtype::Val>(entry.types[0])) {
    case Dtype::Val::float16:
      found = search_row<half>(entry);
      break;
    case Dtype::Val::bfloat16:
      found = search_row<bhalf>(entry);
      break;
    default:
      found = search_row<float>(entry);
  }
  found.join_warp();
  if (threadIdx.x % 32 == 0) {
    keys[threadIdx.x / 32] = found.key;
    places[threadIdx.x / 32] = found.at;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    bool exists = threadIdx.x < blockDim.x / 32;
    found.key = exists ? keys[threadIdx.x] : 0.0f;
    found.at = exists ? places[threadIdx.x] : ~0u;
    found.join_warp();
    if (threadIdx.x == 0) {
      *entry.search.to = found.at;
    }
  }
}

}  // namespace mlx::core::cuda
