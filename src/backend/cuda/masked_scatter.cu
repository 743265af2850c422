// Writing rows where a mask is true. Tiles of 4096 mask entries are counted,
// the counts are summed up, and then every tile numbers its own entries: the
// mask is read twice, and beside it only what is written moves. A mask of one
// tile takes one launch. Entries that the rows do not suffice for keep what the
// source has there, and the host is told.
#include <algorithm>

#include "backend/cuda/copy.h"
#include "backend/cuda/device/index.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/scatter.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kSteps = 16;
constexpr int kTile = kThreads * kSteps;
// Groups of 32 entries, in the order of the mask.
constexpr int kGroups = kTile / 32;

// Of an inclusive sum over the warp.
__device__ __forceinline__ int64_t sum_up_to_lane(int64_t x) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    int64_t below = __shfl_up_sync(0xffffffffu, x, by);
    x += lane >= by ? below : 0;
  }
  return x;
}

__device__ __forceinline__ unsigned set_in_group(
    const bool* mask, int64_t n, int64_t tile, int step) {
  int64_t i = tile * kTile + step * kThreads + threadIdx.x;
  return __ballot_sync(0xffffffffu, i < n && mask[i]);
}

__global__ void __launch_bounds__(kThreads)
    count_set(const bool* mask, int64_t n, int64_t* counts) {
  __shared__ int sums[kWarps];
  int sum = 0;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    sum += __popc(set_in_group(mask, n, blockIdx.x, step));
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int warp_sum : sums) {
      total += warp_sum;
    }
    counts[blockIdx.x] = total;
  }
}

// Replaces each count by the sum of those before it; one block of 1024.
__global__ void __launch_bounds__(1024)
    sum_before(int64_t* counts, int64_t tiles) {
  __shared__ int64_t sums[32];
  int lane = threadIdx.x % 32;
  int warp = threadIdx.x / 32;
  int64_t before = 0;
  for (int64_t base = 0; base < tiles; base += 1024) {
    int64_t i = base + threadIdx.x;
    int64_t count = i < tiles ? counts[i] : 0;
    int64_t sum = sum_up_to_lane(count);
    if (lane == 31) {
      sums[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
      sums[lane] = sum_up_to_lane(sums[lane]);
    }
    __syncthreads();
    if (i < tiles) {
      counts[i] = before + (warp ? sums[warp - 1] : 0) + sum - count;
    }
    before += sums[31];
    __syncthreads();
  }
}

// Rows of `length` elements; blockIdx.y takes `width` columns of them.
struct Rows {
  int64_t length;
  int64_t given;
  int64_t width;
  FastDivisor divide;  // by width
};

template <typename T>
__global__ void __launch_bounds__(kThreads) masked_scatter_rows(
    const bool* mask,
    int64_t n,
    const int64_t* before,
    const T* __restrict__ from,
    T* __restrict__ to,
    Rows rows,
    FaultSite fault) {
  __shared__ int16_t number[kTile];  // of set entries, else -1
  __shared__ int sums[kGroups];
  int lane = threadIdx.x % 32;
  int warp = threadIdx.x / 32;
  unsigned set[kSteps];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    set[step] = set_in_group(mask, n, blockIdx.x, step);
    if (lane == 0) {
      sums[step * kWarps + warp] = __popc(set[step]);
    }
  }
  __syncthreads();
  if (warp == 0) {
    int64_t running = 0;
    for (int base = 0; base < kGroups; base += 32) {
      int count = sums[base + lane];
      int64_t sum = sum_up_to_lane(count);
      sums[base + lane] = static_cast<int>(running + sum - count);
      running += __shfl_sync(0xffffffffu, sum, 31);
    }
    int64_t wanted = (before ? before[blockIdx.x] : 0) + running;
    bool is_end = blockIdx.x == gridDim.x - 1 && blockIdx.y == 0;
    if (is_end && lane == 0 && wanted > rows.given) {
      fault.report(Fault::too_few, rows.given, wanted, 0);
    }
  }
  __syncthreads();
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    bool is_set = set[step] >> lane & 1;
    int below = __popc(set[step] & ((1u << lane) - 1));
    number[step * kThreads + threadIdx.x] =
        static_cast<int16_t>(is_set ? sums[step * kWarps + warp] + below : -1);
  }
  __syncthreads();
  int64_t first = before ? before[blockIdx.x] : 0;
  int64_t column0 = int64_t(blockIdx.y) * rows.width;
  int64_t begin = int64_t(blockIdx.x) * kTile;
  auto entries = static_cast<uint32_t>(min(int64_t(kTile), n - begin));
  auto total = entries * static_cast<uint32_t>(rows.width);
  for (uint32_t i = threadIdx.x; i < total; i += kThreads) {
    uint32_t entry = rows.divide.quotient(i);
    int64_t column = column0 + (i - entry * rows.divide.divisor);
    int64_t row = first + number[entry];
    if (number[entry] >= 0 && row < rows.given && column < rows.length) {
      to[(begin + entry) * rows.length + column] =
          from[row * rows.length + column];
    }
  }
}

// Enough columns a block that all blocks fill the device some times over, and
// few enough for counting in 31 bits.
Rows rows_of(int64_t length, int64_t given, int64_t tiles) {
  int64_t blocks = 8 * device_facts().multiprocessors;
  int64_t pieces = std::clamp<int64_t>(
      blocks / tiles, 1, std::max<int64_t>(1, (length + 63) / 64));
  int64_t width = (length + pieces - 1) / pieces;
  width = std::min<int64_t>(width, 1 << 18);
  // No more blocks than a grid's second axis has.
  width = std::max<int64_t>({width, (length + 65534) / 65535, 1});
  return {length, given, width, FastDivisor(static_cast<uint32_t>(width))};
}

}  // namespace

void masked_scatter(
    const MaskedScatter&,
    const array& src,
    const array& mask_in,
    const array& rows_in,
    array& out,
    Encoder& e) {
  if (!(src.flags().row_contiguous && e.donate(src, out))) {
    copy_into_new(src, out, e);
  }
  auto n = static_cast<int64_t>(mask_in.size());
  if (n == 0) {
    return;
  }
  array mask = row_contiguous(mask_in, e);
  array values = row_contiguous(rows_in, e);
  const auto* is_set = e.in<bool>(mask);
  int64_t tiles = (n + kTile - 1) / kTile;
  auto grid = static_cast<unsigned>(tiles);
  Scratch counts = e.scratch(tiles > 1 ? tiles * sizeof(int64_t) : 1);
  auto* before = tiles > 1 ? counts.get<int64_t>() : nullptr;
  if (tiles > 1) {
    e.launch(count_set, grid, kThreads, 0, is_set, n, before);
    e.launch(sum_before, 1, 1024, 0, before, tiles);
  }
  const void* from = values.size() ? e.in(values) : nullptr;
  void* to = out.size() ? e.out(out) : nullptr;
  size_t bytes = out.nbytes() / static_cast<size_t>(n);
  auto put = [&]<typename T>(T) {
    auto rows = rows_of(
        static_cast<int64_t>(bytes / sizeof(T)), values.shape(0), tiles);
    auto pieces =
        std::max<int64_t>(1, (rows.length + rows.width - 1) / rows.width);
    e.launch(
        masked_scatter_rows<T>,
        dim3(grid, static_cast<unsigned>(pieces)),
        kThreads,
        0,
        is_set,
        n,
        before,
        static_cast<const T*>(from),
        static_cast<T*>(to),
        rows,
        e.faults().site("masked_scatter"));
  };
  auto bits = reinterpret_cast<uintptr_t>(from) |
              reinterpret_cast<uintptr_t>(to) | uintptr_t(bytes);
  if (bits % 16 == 0) {
    put(uint4{});
  } else {
    visit_width(
        out.itemsize(), [&](auto tag) { put(typename decltype(tag)::type{}); });
  }
}

}  // namespace mlx::core::cuda
