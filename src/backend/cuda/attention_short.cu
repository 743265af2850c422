// Attention of one token to a short cache as launches of its own: what the
// entries of a list do (device/batch_attention.cuh), a block for each head or
// split, where a list of many blocks would not be wanted. Limit: latency. So
// blocks take their places early and ask for keys and values before they wait.
#include <algorithm>

#include "backend/cuda/attention.h"
#include "backend/cuda/device/batch_attention.cuh"
#include "backend/cuda/device/overlap.cuh"

namespace mlx::core::cuda {

namespace {

template <typename T, int lanes>
__global__ void __launch_bounds__(kWideThreads, 1)
    attention_short(const __grid_constant__ BatchEntry entry) {
  const BatchEntry::Attention& a = entry.attention;
  if (a.splits == 1) {
    prefetch_keys<T, lanes>(a, static_cast<int>(blockIdx.x));
  }
  begin_after();
  do_attention_of<T, lanes>(entry);
}

template <typename T>
__global__ void __launch_bounds__(kBatchFeatures)
    join_short(const __grid_constant__ BatchEntry entry) {
  begin_after();
  do_join_of<T>(entry);
}

template <typename T>
void launch_short(const BatchEntry& entry, Encoder& e) {
  if (entry.kind == BatchKind::attention_join) {
    e.launch_overlapped(join_short<T>, entry.size, kBatchFeatures, 0, entry);
    return;
  }
  const BatchEntry::Attention& a = entry.attention;
  bool is_narrow = std::max(a.feature_octets, a.value_octets) <= 8;
  auto kernel = is_narrow ? attention_short<T, 8> : attention_short<T, 16>;
  e.launch_overlapped(kernel, entry.size * a.splits, kWideThreads, 0, entry);
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
