// Radix sort of 64-bit keys.
#include "backend/cuda/sort_radix.cuh"

namespace mlx::core::cuda {

int radix_sort(
    uint64_t* keys,
    uint64_t* spare,
    RadixIndices indices,
    int count,
    int bits,
    Encoder& e) {
  return radix_sort_device(keys, spare, indices, count, bits, e);
}

}  // namespace mlx::core::cuda
