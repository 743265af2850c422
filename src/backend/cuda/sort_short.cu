// Short rows: sorted within a block's shared memory by a bitonic network,
// several rows a block when they are very short. One read and one write of
// memory. Rows are padded to a power of two with items above all others;
// indices are part of what is compared, which makes any network stable.
// Exchanges over distances below 32 happen in registers, between the lanes of
// a warp; a row of 4096 then needs 36 barriers instead of 78.
#include <algorithm>

#include "backend/cuda/device/sort_keys.cuh"
#include "backend/cuda/sort_rows.h"

namespace mlx::core::cuda {

namespace {

constexpr size_t kSharedBytes = 32768;
constexpr int kItemsWanted = 1024;

struct KeyAndIndex {
  uint64_t key;
  uint32_t index;
};

__device__ __forceinline__ bool is_less(uint32_t a, uint32_t b) {
  return a < b;
}
__device__ __forceinline__ bool is_less(uint64_t a, uint64_t b) {
  return a < b;
}
__device__ __forceinline__ bool is_less(
    const KeyAndIndex& a, const KeyAndIndex& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}

template <typename Item>
__device__ __forceinline__ Item from_lane(Item x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
__device__ __forceinline__ KeyAndIndex from_lane(KeyAndIndex x, int mask) {
  return {
      __shfl_xor_sync(0xffffffffu, x.key, mask),
      __shfl_xor_sync(0xffffffffu, x.index, mask)};
}

// An item of a row: its key, and its number where indices are wanted.
template <typename Item, bool indices>
__device__ __forceinline__ Item make_item(uint64_t key, uint32_t index) {
  if constexpr (std::is_same_v<Item, KeyAndIndex>) {
    return {key, index};
  } else if constexpr (indices) {
    return key << 32 | index;
  } else {
    return static_cast<Item>(key);
  }
}

template <typename Item, bool indices>
__device__ __forceinline__ void put_item(
    void* to, Dtype::Val type, int64_t i, const Item& item) {
  if constexpr (std::is_same_v<Item, KeyAndIndex>) {
    static_cast<uint32_t*>(to)[i] = item.index;
  } else if constexpr (indices) {
    static_cast<uint32_t*>(to)[i] = static_cast<uint32_t>(item);
  } else {
    store_key(to, type, i, item);
  }
}

// Exchanges over the distances `from`, from / 2, ... 1 (at most 16) between
// the lanes. `i` is the item's place in the block.
template <typename Item>
__device__ __forceinline__ Item
exchange_in_warp(Item x, int i, int level, int padded, int from) {
  bool ascends = (i & level) == 0 || level == padded;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    if (distance <= from) {
      Item other = from_lane(x, distance);
      bool keeps_less = ((i & distance) == 0) == ascends;
      x = is_less(other, x) == keeps_less ? other : x;
    }
  }
  return x;
}

// `padded` (a power of two, at least 32) places a row, `rows` rows a block.
template <typename Item, bool indices>
__global__ void sort_in_block(SortedRows work, int padded, int rows) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* items = reinterpret_cast<Item*>(shared);
  int all = padded * rows;
  int threads = static_cast<int>(blockDim.x);
  int tid = static_cast<int>(threadIdx.x);
  int64_t first_row = int64_t(blockIdx.x) * rows;
  int length = static_cast<int>(work.length);
  Dtype::Val type = work.dtype.val();

  for (int i = tid; i < all; i += threads) {
    int column = i & (padded - 1);
    int64_t row = first_row + i / padded;
    uint64_t key = ~uint64_t(0);
    uint32_t index = 0xffffffffu;
    if (column < length && row < work.count) {
      key = load_key(work.from, type, row * length + column, indices);
      index = static_cast<uint32_t>(column);
    }
    Item x = make_item<Item, indices>(key, index);
#pragma unroll
    for (int level = 2; level <= 32; level *= 2) {
      x = exchange_in_warp(x, i, level, padded, level / 2);
    }
    items[i] = x;
  }
  __syncthreads();
  for (int level = 64; level <= padded; level *= 2) {
    for (int distance = level / 2; distance >= 32; distance /= 2) {
      for (int pair = tid; pair < all / 2; pair += threads) {
        int i = (pair & ~(distance - 1)) << 1 | (pair & (distance - 1));
        bool ascends = (i & level) == 0 || level == padded;
        Item low = items[i];
        Item high = items[i + distance];
        if (is_less(high, low) == ascends) {
          items[i] = high;
          items[i + distance] = low;
        }
      }
      __syncthreads();
    }
    for (int i = tid; i < all; i += threads) {
      items[i] = exchange_in_warp(items[i], i, level, padded, 16);
    }
    __syncthreads();
  }
  for (int i = tid; i < all; i += threads) {
    int column = i & (padded - 1);
    int64_t row = first_row + i / padded;
    if (column < length && row < work.count) {
      put_item<Item, indices>(work.to, type, row * length + column, items[i]);
    }
  }
}

int padded_length(int64_t length) {
  int padded = 32;
  while (padded < length) {
    padded *= 2;
  }
  return padded;
}

template <typename Item, bool indices>
bool launch(const SortedRows& work, Encoder& e) {
  if (work.length > static_cast<int64_t>(kSharedBytes / sizeof(Item))) {
    return false;
  }
  int padded = padded_length(work.length);
  auto rows = static_cast<int>(
      std::clamp<int64_t>(work.count, 1, std::max(1, kItemsWanted / padded)));
  int all = padded * rows;
  int threads = std::clamp(all / 4 / 32 * 32, 32, 1024);
  e.launch(
      sort_in_block<Item, indices>,
      static_cast<unsigned>((work.count + rows - 1) / rows),
      threads,
      all * sizeof(Item),
      work,
      padded,
      rows);
  return true;
}

}  // namespace

bool sort_short_rows(const SortedRows& work, Encoder& e) {
  bool is_wide = work.dtype.size() == 8;
  if (work.wants_indices) {
    return is_wide ? launch<KeyAndIndex, true>(work, e)
                   : launch<uint64_t, true>(work, e);
  }
  return is_wide ? launch<uint64_t, false>(work, e)
                 : launch<uint32_t, false>(work, e);
}

}  // namespace mlx::core::cuda
