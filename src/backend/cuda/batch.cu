// The kernels that go through a list of small operations: one block that does
// narrow entries, results of one being seen by the next because all threads
// meet in between; or a block of each multiprocessor for lists with wide ones.
#include "backend/cuda/batch.h"
#include "backend/cuda/device/batch_attention.cuh"
#include "backend/cuda/device/batch_narrow.cuh"
#include "backend/cuda/device/batch_qmv.cuh"
#include "backend/cuda/device/grid_barrier.cuh"

namespace mlx::core::cuda {

namespace {

template <int capacity>
__global__ void __launch_bounds__(kNarrowThreads)
    run_narrow(int count, const __grid_constant__ Batch<capacity> batch) {
  for (int i = 0; i < count; ++i) {
    do_narrow(batch.entries[i]);
    __syncthreads();
  }
}

__device__ __forceinline__ void run_entry(const BatchEntry& entry) {
  if (entry.kind == BatchKind::quantized_row) {
    do_quantized_row(entry);
  } else if (entry.kind == BatchKind::attention) {
    do_attention(entry);
  } else if (entry.kind == BatchKind::attention_join) {
    do_join(entry);
  } else {
    do_narrow(entry);
  }
}

// A block's own way through the list: the entries that are its or all blocks',
// and the meetings before each.
struct Way {
  int at = 0;        // the entry, or the count
  int meetings = 0;  // before it, after the entry before

  __device__ __forceinline__ void find(const BatchHead* heads, int count) {
    meetings = 0;
    for (; at < count; ++at) {
      meetings += heads[at].after_meeting ? 1 : 0;
      if (heads[at].block == BatchHead::all || heads[at].block == blockIdx.x) {
        return;
      }
    }
  }
};

// Entries lie in the memory of constants, far away when first read: the next
// is brought while the one before is done.
__device__ __forceinline__ void bring(const BatchEntry& from, BatchEntry& to) {
  static_assert(sizeof(BatchEntry) % 4 == 0 && sizeof(BatchEntry) <= 4 * 32);
  unsigned lane = threadIdx.x % 32;
  if (threadIdx.x / 32 == kWideThreads / 32 - 1 &&
      lane < sizeof(BatchEntry) / 4) {
    reinterpret_cast<uint32_t*>(&to)[lane] =
        reinterpret_cast<const uint32_t*>(&from)[lane];
  }
}

__global__ void __launch_bounds__(kWideThreads, 1) run_wide(
    int count,
    const __grid_constant__ BatchHeads<kWideEntries> heads,
    const __grid_constant__ Batch<kWideEntries> batch,
    unsigned long long* arrivals) {
  __shared__ BatchEntry slots[2];
  GridBarrier barrier(arrivals);
  int slot = 0;
  Way way;
  way.find(heads.heads, count);
  if (way.at < count) {
    bring(batch.entries[way.at], slots[slot]);
  }
  __syncthreads();
  while (way.at < count) {
    const BatchEntry& entry = slots[slot];
    Way next{way.at + 1};
    next.find(heads.heads, count);
    for (int i = 0; i < way.meetings; ++i) {
      barrier.arrive();
      if (i == 0 && entry.kind == BatchKind::quantized_row) {
        prefetch_lines(entry);
      }
      barrier.wait();
    }
    slot ^= 1;
    if (next.at < count) {
      bring(batch.entries[next.at], slots[slot]);
    }
    run_entry(entry);
    __syncthreads();
    way = next;
  }
  for (int i = 0; i < way.meetings; ++i) {
    barrier.arrive();
    barrier.wait();
  }
}

}  // namespace

BatchKernelFew batch_kernel_few() {
  return &run_narrow<kFewEntries>;
}
BatchKernelNarrow batch_kernel_narrow() {
  return &run_narrow<kNarrowEntries>;
}
BatchKernelWide batch_kernel_wide() {
  return &run_wide;
}

}  // namespace mlx::core::cuda
