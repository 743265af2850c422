// Attention of one token to a short cache as launches of its own: what entries
// of a list do (device/batch_attention.cuh), where a list of many blocks would
// not be wanted. Limit: latency. So blocks take their places early and ask for
// keys and values before they wait, and where a head's keys are few, a cluster
// of blocks shares them: what a multiprocessor reads in a microsecond, 100 KB,
// is soon less than a head has. Parts are joined through shared memory.
#include <cooperative_groups.h>

#include <algorithm>

#include "backend/cuda/attention.h"
#include "backend/cuda/device/batch_attention.cuh"
#include "backend/cuda/device/overlap.cuh"

namespace mlx::core::cuda {

namespace {

constexpr int kCluster = 4;

/// A block's part of a head: values, maximum, sum.
using BlockPart = float[kBatchFeatures + 2];

// A cluster a head.
template <typename T, int lanes>
__global__ void __cluster_dims__(kCluster, 1, 1)
    __launch_bounds__(kWideThreads, 1)
        attention_short(const __grid_constant__ BatchEntry entry) {
  __shared__ BlockPart mine;
  constexpr int kGroups = kWideThreads / lanes;
  constexpr int kWidth = kBatchFeatures + 2;
  auto cluster = cooperative_groups::this_cluster();
  const BatchEntry::Attention& a = entry.attention;
  bool is_bool = static_cast<Dtype::Val>(entry.types[1]) == Dtype::Val::bool_;
  auto rank = static_cast<int>(cluster.block_rank());
  auto head = static_cast<int>(blockIdx.x) / kCluster;
  ask_for_keys<T, lanes, 1>(a, head, rank * kGroups);
  begin_after();
  // To read a round of keys that are hidden takes less than to look for them.
  bool is_short = a.keys <= kCluster * kGroups;
  int visible = is_short ? a.keys : count_visible(a, is_bool);
  int of_block = (visible + kCluster - 1) / kCluster;
  int first = rank * of_block;
  SoftmaxPart part =
      attend<T, lanes>(a, is_bool, head, first, min(visible, first + of_block));
  AttentionParts& parts = attention_parts();
  leave_part<lanes>(part, parts);
  __syncthreads();
  int features = a.value_octets * 8;
  auto d = static_cast<int>(threadIdx.x);
  if (d < features) {
    JoinedFeature of_warps(parts[0], kAttentionWarps, kWidth, d);
    mine[d] = of_warps.value;
    if (d == 0) {
      mine[kBatchFeatures] = of_warps.most;
      mine[kBatchFeatures + 1] = of_warps.sum;
    }
  }
  cluster.sync();
  if (rank == 0 && d < features) {
    float most = -INFINITY;
    float sum = 0.0f;
    float value = 0.0f;
    const float* others[kCluster];
#pragma unroll
    for (int i = 0; i < kCluster; ++i) {
      others[i] = cluster.map_shared_rank(&mine[0], i);
      most = fmaxf(most, others[i][kBatchFeatures]);
    }
#pragma unroll
    for (int i = 0; i < kCluster; ++i) {
      float weight = exp2f(others[i][kBatchFeatures] - safe(most));
      sum += weight * others[i][kBatchFeatures + 1];
      value += weight * others[i][d];
    }
    static_cast<T*>(a.to)[head * features + d] = convert<T>(value / sum);
  }
  cluster.sync();  // what is read must not be gone
}

// A block a split.
template <typename T, int lanes>
__global__ void __launch_bounds__(kWideThreads, 1)
    attention_splits(const __grid_constant__ BatchEntry entry) {
  begin_after();
  do_attention_of<T, lanes>(entry);
}

template <typename T>
__global__ void __launch_bounds__(kBatchFeatures)
    join_short(const __grid_constant__ BatchEntry entry) {
  begin_after();
  do_join_of<T>(entry);
}

template <typename T, int lanes>
void launch_lanes(const BatchEntry& entry, Encoder& e) {
  uint32_t splits = entry.attention.splits;
  auto kernel =
      splits == 1 ? attention_short<T, lanes> : attention_splits<T, lanes>;
  uint32_t of_head = splits == 1 ? kCluster : splits;
  e.launch_overlapped(kernel, entry.size * of_head, kWideThreads, 0, entry);
}

template <typename T>
void launch_short(const BatchEntry& entry, Encoder& e) {
  if (entry.kind == BatchKind::attention_join) {
    e.launch_overlapped(join_short<T>, entry.size, kBatchFeatures, 0, entry);
    return;
  }
  const BatchEntry::Attention& a = entry.attention;
  if (std::max(a.feature_octets, a.value_octets) <= 8) {
    launch_lanes<T, 8>(entry, e);
  } else {
    launch_lanes<T, 16>(entry, e);
  }
}

}  // namespace

void attention_short(const BatchEntry& entry, Encoder& e) {
  switch (static_cast<Dtype::Val>(entry.types[0])) {
    case Dtype::Val::float16:
      return launch_short<half>(entry, e);
    case Dtype::Val::bfloat16:
      return launch_short<bhalf>(entry, e);
    default:
      return launch_short<float>(entry, e);
  }
}

}  // namespace mlx::core::cuda
