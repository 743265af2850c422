// Long rows: keys go through radix sorts of device memory. The row's number
// stands above the key where there are several rows and both fit in one
// integer; long rows are sorted one by one; wide keys of many rows are sorted
// by key, then, as the sort is stable, by row. Beside the passes of the sort
// itself, keys are written once and read once.
#include <algorithm>

#include "backend/cuda/device/sort_keys.cuh"
#include "backend/cuda/sort_rows.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;
// Elements that are sorted at a time.
constexpr int64_t kMost = int64_t(1) << 30;
// From here on a row fills the device by itself.
constexpr int64_t kLongRow = int64_t(1) << 20;

// Keys, with their row above them at bit `row_shift` (64: without), and the
// numbers of elements: within their row, or over all for `counts_all`.
template <typename Key>
__global__ void __launch_bounds__(kThreads) make_sort_keys(
    SortedRows work,
    Key* keys,
    uint32_t* numbers,
    int row_shift,
    bool counts_all) {
  auto length = static_cast<uint32_t>(work.length);
  auto total = static_cast<uint32_t>(work.count) * length;
  uint32_t step = gridDim.x * kThreads;
  for (uint32_t base = blockIdx.x * kThreads + threadIdx.x; base < total;
       base += step * kInFlight) {
    uint64_t key[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      uint32_t i = base + j * step;
      if (i < total) {
        key[j] = load_key(work.from, work.dtype.val(), i, work.wants_indices);
      }
    }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      uint32_t i = base + j * step;
      if (i < total) {
        uint32_t row = work.count > 1 ? i / length : 0;
        uint64_t above = row_shift < 64 ? uint64_t(row) << row_shift : 0;
        keys[i] = static_cast<Key>(key[j] | above);
        if (numbers) {
          numbers[i] = counts_all ? i : i - row * length;
        }
      }
    }
  }
}

// Elements of the result from sorted keys, which may be in its memory.
template <typename Key>
__global__ void __launch_bounds__(kThreads)
    turn_back_keys(SortedRows work, const Key* keys, int key_bits) {
  auto total = static_cast<uint32_t>(work.count * work.length);
  uint64_t mask = ~uint64_t(0) >> (64 - key_bits);
  uint32_t step = gridDim.x * kThreads;
  for (uint32_t base = blockIdx.x * kThreads + threadIdx.x; base < total;
       base += step * kInFlight) {
    uint64_t key[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      uint32_t i = base + j * step;
      key[j] = i < total ? keys[i] : 0;
    }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      uint32_t i = base + j * step;
      if (i < total) {
        store_key(work.to, work.dtype.val(), i, key[j] & mask);
      }
    }
  }
}

// The rows of elements with these numbers over all rows.
__global__ void __launch_bounds__(kThreads) rows_of_numbers(
    const uint32_t* numbers, uint32_t* rows, uint32_t length, uint32_t n) {
  uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < n; i += step) {
    rows[i] = numbers[i] / length;
  }
}

// From numbers over all rows to the result: 8-byte elements, or numbers
// within the row.
__global__ void __launch_bounds__(kThreads)
    take_numbered(SortedRows work, const uint32_t* numbers) {
  auto length = static_cast<uint32_t>(work.length);
  auto total = static_cast<uint32_t>(work.count) * length;
  uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < total; i += step) {
    uint32_t number = numbers[i];
    if (work.wants_indices) {
      static_cast<uint32_t*>(work.to)[i] = number % length;
    } else {
      // By way of keys, for the one NaN that they know.
      Dtype::Val type = work.dtype.val();
      store_key(work.to, type, i, load_key(work.from, type, number, false));
    }
  }
}

int bits_for(int64_t count) {
  int bits = 0;
  while ((int64_t(1) << bits) < count) {
    ++bits;
  }
  return bits;
}

int key_bits(Dtype dtype) {
  return dtype == bool_ ? 1 : static_cast<int>(8 * dtype.size());
}

int total_of(const SortedRows& work) {
  return static_cast<int>(work.count * work.length);
}

// One radix sort; the row's number and the key fit in a Key.
template <typename Key>
void sort_packed(const SortedRows& work, Encoder& e) {
  int n = total_of(work);
  int bits = key_bits(work.dtype);
  int row_bits = bits_for(work.count);
  dim3 grid = grid_for(static_cast<size_t>(n), kThreads);
  Scratch keys = e.scratch(n * sizeof(Key));
  // The result's memory is spare until the end.
  bool to_is_spare = !work.wants_indices && work.dtype.size() == sizeof(Key);
  Scratch room = e.scratch(to_is_spare ? 1 : n * sizeof(Key));
  auto* spare = to_is_spare ? static_cast<Key*>(work.to) : room.get<Key>();
  Scratch numbers = e.scratch(work.wants_indices ? n * sizeof(uint32_t) : 1);
  RadixIndices indices;
  if (work.wants_indices) {
    indices = {numbers.get<uint32_t>(), static_cast<uint32_t*>(work.to)};
  }
  e.launch(
      make_sort_keys<Key>,
      grid,
      kThreads,
      0,
      work,
      keys.get<Key>(),
      indices.given,
      row_bits ? bits : 64,
      false);
  int which =
      radix_sort(keys.get<Key>(), spare, indices, n, bits + row_bits, e);
  if (!work.wants_indices) {
    e.launch(
        turn_back_keys<Key>,
        grid,
        kThreads,
        0,
        work,
        which ? spare : keys.get<Key>(),
        bits);
  } else if (which == 0) {
    e.copy_bytes(work.to, indices.given, n * sizeof(uint32_t));
  }
}

// Keys of 64 bits in several rows: by key, then by row.
void sort_twice(const SortedRows& work, Encoder& e) {
  int n = total_of(work);
  auto length = static_cast<uint32_t>(work.length);
  dim3 grid = grid_for(static_cast<size_t>(n), kThreads);
  Scratch keys = e.scratch(n * sizeof(uint64_t));
  Scratch spare = e.scratch(n * sizeof(uint64_t));
  Scratch number = e.scratch(n * sizeof(uint32_t));
  Scratch other = e.scratch(n * sizeof(uint32_t));
  uint32_t* numbers[2] = {number.get<uint32_t>(), other.get<uint32_t>()};
  e.launch(
      make_sort_keys<uint64_t>,
      grid,
      kThreads,
      0,
      work,
      keys.get<uint64_t>(),
      numbers[0],
      64,
      true);
  int which = radix_sort(
      keys.get<uint64_t>(),
      spare.get<uint64_t>(),
      {numbers[0], numbers[1]},
      n,
      64,
      e);
  auto* rows = keys.get<uint32_t>();
  e.launch(
      rows_of_numbers,
      grid,
      kThreads,
      0,
      numbers[which],
      rows,
      length,
      static_cast<uint32_t>(n));
  int then = radix_sort(
      rows,
      rows + n,
      {numbers[which], numbers[1 - which]},
      n,
      bits_for(work.count),
      e);
  e.launch(
      take_numbered,
      grid,
      kThreads,
      0,
      work,
      numbers[then ? 1 - which : which]);
}

void sort_some_rows(const SortedRows& work, Encoder& e) {
  int bits = key_bits(work.dtype) + bits_for(work.count);
  if (bits <= 32) {
    sort_packed<uint32_t>(work, e);
  } else if (bits <= 64) {
    sort_packed<uint64_t>(work, e);
  } else {
    sort_twice(work, e);
  }
}

}  // namespace

void sort_long_rows(const SortedRows& work, Encoder& e) {
  int64_t at_once =
      work.length >= kLongRow ? 1 : std::max<int64_t>(1, kMost / work.length);
  int64_t in_size = static_cast<int64_t>(work.dtype.size());
  int64_t out_size = work.wants_indices ? 4 : in_size;
  for (int64_t row = 0; row < work.count; row += at_once) {
    SortedRows part = work;
    int64_t offset = row * work.length;
    part.from = static_cast<const char*>(work.from) + offset * in_size;
    part.to = static_cast<char*>(work.to) + offset * out_size;
    part.count = std::min(at_once, work.count - row);
    sort_some_rows(part, e);
  }
}

}  // namespace mlx::core::cuda
