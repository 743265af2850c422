// The kernels that go through a list of small operations: one block that does
// narrow entries, results of one being seen by the next because all threads
// meet in between, which may take its place early (device/overlap.cuh); or a
// block of each multiprocessor for lists with wide ones.
#include "backend/cuda/batch.h"
#include "backend/cuda/device/batch_attention.cuh"
#include "backend/cuda/device/batch_narrow.cuh"
#include "backend/cuda/device/batch_qmv.cuh"
#include "backend/cuda/device/grid_barrier.cuh"
#include "backend/cuda/device/overlap.cuh"

namespace mlx::core::cuda {

namespace {

// Of the weight of a norm, 0 where there is none. It comes from afar, since
// what a model reads in a step is more than the L2 cache holds: nothing else
// would ask for it before it is due.
__device__ __forceinline__ int weight_bytes(const BatchEntry& entry) {
  if (entry.kind != BatchKind::rms_norm || entry.norm.weight == nullptr) {
    return 0;
  }
  auto type = static_cast<Dtype::Val>(entry.types[0]);
  return entry.norm.n * (type == Dtype::Val::float32 ? 4 : 2);
}

template <int capacity>
__global__ void __launch_bounds__(kNarrowThreads)
    run_narrow(int count, const __grid_constant__ Batch<capacity> batch) {
  for (int i = 0; i < count; ++i) {
    const BatchEntry& entry = batch.entries[i];
    ask_for(entry.norm.weight, weight_bytes(entry));
  }
  begin_after();
  for (int i = 0; i < count; ++i) {
    const BatchEntry& entry = batch.entries[i];
    if (entry.goes_with_next) {
      do_copies(entry, batch.entries[++i]);
    } else {
      do_narrow(entry);
    }
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

// Of a list, what a block needs. Entries come from the memory of constants,
// which is far away when first read, so all are brought at the beginning.
struct WideList {
  BatchEntry entries[kWideEntries];
  BatchHead heads[kWideEntries];
  // What is this block's or all blocks', and the meetings before it.
  uint8_t mine[kWideEntries];
  uint8_t meetings[kWideEntries];
  int mine_count;
  int all_meetings;

  // By the first warp.
  __device__ __forceinline__ void find_mine(int count) {
    int lane = static_cast<int>(threadIdx.x);
    unsigned before = (1u << lane) - 1;
    int found = 0;
    int met = 0;
    for (int base = 0; base < count; base += 32) {
      int i = base + lane;
      BatchHead head = i < count ? heads[i] : BatchHead{};
      bool meets = i < count && head.after_meeting;
      bool is_mine = i < count && (head.block == BatchHead::all ||
                                   head.everywhere || head.block == blockIdx.x);
      unsigned all_meet = __ballot_sync(0xffffffffu, meets);
      unsigned all_mine = __ballot_sync(0xffffffffu, is_mine);
      if (is_mine) {
        int at = found + __popc(all_mine & before);
        mine[at] = static_cast<uint8_t>(i);
        meetings[at] = static_cast<uint8_t>(
            met + __popc(all_meet & before) + (meets ? 1 : 0));
      }
      found += __popc(all_mine);
      met += __popc(all_meet);
    }
    if (lane == 0) {
      mine_count = found;
      all_meetings = met;
    }
  }

  // The product that comes before the meeting after the next, or -1.
  __device__ __forceinline__ int next_product(int step) const {
    for (int i = step; i < mine_count && meetings[i] == meetings[step]; ++i) {
      if (entries[mine[i]].kind == BatchKind::quantized_row) {
        return mine[i];
      }
    }
    return -1;
  }
};

// Of the block alone.
__device__ __forceinline__ char* own_memory() {
  extern __shared__ uint4 own[];
  return reinterpret_cast<char*>(own);
}

__device__ __forceinline__ void point_to_own(BatchEntry& entry) {
  if (entry.owner == blockIdx.x) {
    return;
  }
  auto* words = reinterpret_cast<uint64_t*>(&entry.elementwise);
  for (int i = 0; i < entry.own_count; ++i) {
    words[entry.own_words[i]] =
        reinterpret_cast<uint64_t>(own_memory() + entry.own_bytes[i]);
  }
}

// It has the least to do; the first one waits for other blocks.
__device__ __forceinline__ bool is_last_warp() {
  return threadIdx.x >= kWideThreads - 32;
}

// Asks for the weights of norms. Each block does its share for all.
__device__ __forceinline__ void prefetch_weights(
    const WideList& list, int count) {
  for (auto i = static_cast<int>(threadIdx.x % 32); i < count; i += 32) {
    const BatchEntry& entry = list.entries[i];
    int bytes = weight_bytes(entry);
    if (i % static_cast<int>(gridDim.x) == static_cast<int>(blockIdx.x) &&
        bytes > 0) {
      prefetch_bytes(entry.norm.weight, 0, static_cast<uint32_t>(bytes));
    }
  }
}

template <typename T>
__device__ __forceinline__ void bring(const T* from, T* to, int count) {
  constexpr int kWords = sizeof(T) / sizeof(uint32_t);
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  auto* words = reinterpret_cast<const uint32_t*>(from);
  for (auto i = static_cast<int>(threadIdx.x); i < count * kWords;
       i += kWideThreads) {
    reinterpret_cast<uint32_t*>(to)[i] = words[i];
  }
}

__global__ void __launch_bounds__(kWideThreads, 1) run_wide(
    int count,
    const __grid_constant__ BatchHeads<kWideEntries> heads,
    const __grid_constant__ Batch<kWideEntries> batch,
    unsigned long long* arrivals) {
  __shared__ WideList list;
  GridBarrier barrier(arrivals);
  for (auto i = static_cast<int>(threadIdx.x); i < count; i += kWideThreads) {
    list.heads[i] = heads.heads[i];
  }
  bring(batch.entries, list.entries, count);
  __syncthreads();
  if (is_last_warp()) {
    prefetch_weights(list, count);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    list.find_mine(count);
  } else if (threadIdx.x - 32 < static_cast<unsigned>(count)) {
    point_to_own(list.entries[threadIdx.x - 32]);
  }
  __syncthreads();
  int met = 0;
  for (int step = 0; step <= list.mine_count; ++step) {
    bool ends = step == list.mine_count;
    const BatchEntry& entry = list.entries[ends ? 0 : list.mine[step]];
    int due = ends ? list.all_meetings : list.meetings[step];
    int product = is_last_warp() ? list.next_product(step) : -1;
    for (; met < due; ++met) {
      barrier.arrive();
      if (product >= 0) {
        prefetch_lines(list.entries[product]);
        product = -1;
      }
      barrier.wait();
    }
    if (!ends) {
      run_entry(entry);
      __syncthreads();
    }
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
