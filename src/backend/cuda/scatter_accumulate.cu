// Sums, products, maxima and minima at positions. Updates meet memory by
// atomic operations, in whatever order threads come, so floating-point sums of
// several updates may round differently from run to run. A single position
// needs no atomics.
#include "backend/cuda/device/accumulate.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/positions.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;

// Element n of the updates is element n % size of the slice of position
// n / size. `is_small`: 31 bits count them all.
template <typename T>
__global__ void __launch_bounds__(kThreads) scatter_accumulate(
    Accumulate mode,
    const T* __restrict__ from,
    T* to,
    const __grid_constant__ Positions positions,
    const __grid_constant__ StridedAxes<2> slice,
    FastDivisor divide,
    uint64_t size,
    uint64_t total,
    bool is_small) {
  bool is_alone = positions.count == 1;
  uint64_t step = uint64_t(gridDim.x) * kThreads;
  for (uint64_t n = uint64_t(blockIdx.x) * kThreads + threadIdx.x; n < total;
       n += step) {
    int64_t begin;
    int64_t update;
    int64_t at[2];
    if (is_small) {
      uint32_t p = divide.quotient(static_cast<uint32_t>(n));
      if (!positions.locate(p, begin)) {
        continue;
      }
      update = positions.walk(p, positions.update_strides);
      slice.locate(static_cast<uint32_t>(n - p * size), at);
    } else {
      uint64_t p = n / size;
      if (!positions.locate(p, begin)) {
        continue;
      }
      update = positions.walk(p, positions.update_strides);
      slice.locate(n - p * size, at);
    }
    T* target = to + begin + at[0];
    T value = from[update + at[1]];
    if (is_alone) {
      *target = meet(mode, *target, value);
    } else {
      meet_atomically(mode, target, value);
    }
  }
}

}  // namespace

void accumulate_slices(
    Accumulate mode,
    Dtype dtype,
    const void* from,
    void* to,
    const Positions& positions,
    const SlicePlan& slice,
    Encoder& e) {
  size_t size = slice.size();
  size_t total = size * static_cast<size_t>(positions.count);
  bool is_small = fits_32_bits(total);
  visit_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    e.launch(
        scatter_accumulate<T>,
        grid_for(total, kThreads),
        kThreads,
        0,
        mode,
        static_cast<const T*>(from),
        static_cast<T*>(to),
        positions,
        slice.writing(),
        FastDivisor(is_small ? static_cast<uint32_t>(size) : 1),
        size,
        total,
        is_small);
  });
}

}  // namespace mlx::core::cuda
