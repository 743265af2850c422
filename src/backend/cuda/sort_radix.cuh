// The toolkit's radix sort of device memory behind one function; one compile
// unit a key type, for it is long.
#pragma once

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "backend/cuda/sort_rows.h"

namespace mlx::core::cuda {

template <typename Key>
int radix_sort_device(
    Key* keys,
    Key* spare,
    RadixIndices indices,
    int count,
    int bits,
    Encoder& e) {
  cub::DoubleBuffer<Key> both(keys, spare);
  cub::DoubleBuffer<uint32_t> values(indices.given, indices.spare);
  auto sort = [&](void* room, size_t& bytes) {
    check(
        indices.given
            ? cub::DeviceRadixSort::SortPairs(
                  room, bytes, both, values, count, 0, bits, e.stream())
            : cub::DeviceRadixSort::SortKeys(
                  room, bytes, both, count, 0, bits, e.stream()),
        "sorting");
  };
  size_t bytes = 0;
  sort(nullptr, bytes);
  Scratch room = e.scratch(std::max<size_t>(bytes, 1));
  sort(room.get(), bytes);
  return both.selector;
}

}  // namespace mlx::core::cuda
