// Attention of few query rows (decoding). All query rows that share a key head
// are taken together, so keys and values are read once; the keys are cut into
// splits, so that all multiprocessors read. Limit: bytes of keys and values
// over bandwidth. Two kernels compute a split: attention_few_tensor.cuh for
// half types in whole packs, attention_few_lanes.cuh for all else. Both keep a
// running maximum and sum (online softmax, Milakov and Gimelshein 2018). Here
// is what they share, and how splits are joined.
#pragma once

#include <algorithm>
#include <cfloat>

#include "backend/cuda/attention.h"
#include "backend/cuda/device/softmax_part.cuh"

namespace mlx::core::cuda {

constexpr int kMostSplits = 512;

/// Whether rows of keys, values and queries are read in whole packs.
inline bool is_packed(const AttentionProblem& p) {
  return p.aligned && p.features % 8 == 0 && p.value_features % 8 == 0;
}

/// What a block works on: up to `rows` query rows of one key head and one split
/// of its keys.
struct FewBlock {
  int split;
  int batch;
  int kv_head;
  int row0;
  int row_count;
  int first_key;
  int end;  // of the keys

  __device__ __forceinline__ FewBlock(
      const AttentionProblem& p, int rows, int splits, int keys_per_split) {
    int heads = p.batch * p.kv_heads;
    int head = blockIdx.x / splits % heads;
    split = blockIdx.x % splits;
    batch = head / p.kv_heads;
    kv_head = head % p.kv_heads;
    row0 = blockIdx.x / splits / heads * rows;
    row_count = min(rows, p.group * p.tokens - row0);
    first_key = split * keys_per_split;
    end = min(p.keys, first_key + keys_per_split);
  }
  template <typename T>
  __device__ __forceinline__ const T* keys(const AttentionProblem& p) const {
    return static_cast<const T*>(p.k) + batch * p.k_strides[0] +
           kv_head * p.k_strides[1];
  }
  template <typename T>
  __device__ __forceinline__ const T* values(const AttentionProblem& p) const {
    return static_cast<const T*>(p.v) + batch * p.v_strides[0] +
           kv_head * p.v_strides[1];
  }
};

/// Row r of a block: its query and what it may see. Rows past the end are the
/// last one again.
template <typename T>
struct FewRow {
  const T* query;
  const char* mask;
  int limit;  // the first key that causality hides

  FewRow() = default;
  __device__ __forceinline__
  FewRow(const AttentionProblem& p, const FewBlock& block, int r) {
    int row = block.row0 + min(r, block.row_count - 1);
    int token = row % p.tokens;
    int head = block.kv_head * p.group + row / p.tokens;
    query = static_cast<const T*>(p.q) + block.batch * p.q_strides[0] +
            head * p.q_strides[1] + token * p.q_strides[2];
    int mask_size = p.mask_kind == MaskKind::boolean ? 1 : sizeof(T);
    mask = static_cast<const char*>(p.mask) +
           (block.batch * p.mask_strides[0] + head * p.mask_strides[1] +
            token * p.mask_strides[2]) *
               mask_size;
    limit = p.causal ? token + p.keys - p.tokens + 1 : p.keys;
  }

  /// The score of a key in units of log 2, from its product.
  __device__ __forceinline__ float masked(
      const AttentionProblem& p, float score, int key) const {
    if (p.mask_kind == MaskKind::boolean) {
      const bool* keep = reinterpret_cast<const bool*>(mask);
      score = keep[key * p.mask_strides[3]] ? score : -FLT_MAX;
    } else if (p.mask_kind == MaskKind::additive) {
      const T* add = reinterpret_cast<const T*>(mask);
      score += to_compute(add[key * p.mask_strides[3]]) * kLog2E;
    }
    return key < limit ? score : -FLT_MAX;
  }
};

__device__ __forceinline__ bool sees_all(const AttentionProblem& p) {
  return p.mask_kind == MaskKind::none && !p.causal;
}

// Writes one feature of one row: the sink joins the sum, then all is divided.
template <typename T>
__device__ __forceinline__ void finish_row(
    const AttentionProblem& p,
    int head,
    int64_t out_row,
    int d,
    float value,
    float most,
    float sum) {
  if (p.sinks != nullptr) {
    float sink =
        to_compute(static_cast<const T*>(p.sinks)[head * p.sink_stride]) *
        kLog2E;
    float larger = fmaxf(most, sink);
    float scaled = exp2f(most - safe(larger));
    value *= scaled;
    sum = sum * scaled + exp2f(sink - safe(larger));
  }
  static_cast<T*>(p.out)[out_row * p.value_features + d] =
      convert<T>(value / sum);
}

/// What a warp found of its rows: weighted values, then maximum and sum.
template <int rows, int features>
using FewFound = float[rows][features + 2];

/// Joins what the warps of a block found, and writes it: the result, or the
/// split's part of it.
template <typename T, int rows, int features>
__device__ __forceinline__ void finish_block(
    const AttentionProblem& p,
    const FewBlock& block,
    const FewFound<rows, features>* found,
    int splits,
    float* partial) {
  int warps = blockDim.x / 32;
  int width = p.value_features + 2;
  int64_t head = int64_t(block.batch) * p.kv_heads + block.kv_head;
  for (int at = threadIdx.x; at < block.row_count * p.value_features;
       at += blockDim.x) {
    int r = at / p.value_features;
    int d = at % p.value_features;
    float most = -INFINITY;
    for (int w = 0; w < warps; ++w) {
      most = fmaxf(most, found[w][r][features]);
    }
    float sum = 0.0f;
    float value = 0.0f;
    for (int w = 0; w < warps; ++w) {
      float weight = exp2f(found[w][r][features] - safe(most));
      sum += weight * found[w][r][features + 1];
      value += weight * found[w][r][d];
    }
    int row = block.row0 + r;
    int64_t out_row = head * p.group * p.tokens + row;
    if (splits == 1) {
      int of_row = block.kv_head * p.group + row / p.tokens;
      finish_row<T>(p, of_row, out_row, d, value, most, sum);
      continue;
    }
    float* to = partial + (out_row * splits + block.split) * width;
    to[d] = value;
    if (d == 0) {
      to[p.value_features] = most;
      to[p.value_features + 1] = sum;
    }
  }
}

// One block a row: joins what its splits found. Four groups of threads take
// every fourth split each.
constexpr int kJoinThreads = 128;
constexpr int kJoinGroups = 4;

template <typename T>
__global__ void __launch_bounds__(kJoinThreads* kJoinGroups) join_splits(
    const __grid_constant__ AttentionProblem p,
    int splits,
    const float* partial) {
  __shared__ float weights[kMostSplits];
  __shared__ float values[kJoinGroups][kFewFeatures];
  __shared__ float sums[kJoinGroups];
  int64_t row = blockIdx.x;
  int width = p.value_features + 2;
  const float* from = partial + row * splits * width;
  for (int i = threadIdx.x; i < splits; i += blockDim.x) {
    weights[i] = from[int64_t(i) * width + p.value_features];
  }
  __syncthreads();
  float most = -INFINITY;
  for (int i = 0; i < splits; ++i) {
    most = fmaxf(most, weights[i]);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < splits; i += blockDim.x) {
    weights[i] = exp2f(weights[i] - safe(most));
  }
  __syncthreads();
  int group = threadIdx.x / kJoinThreads;
  int first = threadIdx.x % kJoinThreads;
  for (int d = first; d < p.value_features; d += kJoinThreads) {
    float value = 0.0f;
#pragma unroll 8
    for (int i = group; i < splits; i += kJoinGroups) {
      value += weights[i] * from[int64_t(i) * width + d];
    }
    values[group][d] = value;
  }
  if (first == 0) {
    float sum = 0.0f;
#pragma unroll 8
    for (int i = group; i < splits; i += kJoinGroups) {
      sum += weights[i] * from[int64_t(i) * width + p.value_features + 1];
    }
    sums[group] = sum;
  }
  __syncthreads();
  int heads = p.kv_heads * p.group;
  int head = static_cast<int>(row / p.tokens % heads);
  for (int d = threadIdx.x; d < p.value_features; d += blockDim.x) {
    float value = 0.0f;
    float sum = 0.0f;
#pragma unroll
    for (int g = 0; g < kJoinGroups; ++g) {
      value += values[g][d];
      sum += sums[g];
    }
    finish_row<T>(p, head, row, d, value, most, sum);
  }
}

/// A kernel that computes splits, and how it is launched.
struct FewKernel {
  void (*kernel)(AttentionProblem, int, int, float*);
  int threads;
  int rows;  // of a block
  int step;  // keys that a block takes at a time
  size_t shared;
};

/// Blocks of the kernel that run at a time.
inline size_t blocks_at_a_time(const FewKernel& few) {
  int per_processor = 1;
  check(
      cudaFuncSetAttribute(
          few.kernel,
          cudaFuncAttributeMaxDynamicSharedMemorySize,
          static_cast<int>(few.shared)),
      "asking for shared memory");
  check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &per_processor, few.kernel, few.threads, few.shared),
      "asking for the occupancy");
  return size_t(per_processor) * device_facts().multiprocessors;
}

template <typename T>
void launch_few(
    const FewKernel& few,
    size_t at_a_time,
    const AttentionProblem& p,
    Encoder& e) {
  int all_rows = p.group * p.tokens;
  size_t groups = (all_rows + few.rows - 1) / few.rows;
  size_t heads = size_t(p.batch) * p.kv_heads * groups;
  // One round of blocks. A split is worth its share of the second kernel from
  // 4 steps on.
  size_t most = std::clamp(p.keys / (4 * few.step), 1, kMostSplits);
  auto splits =
      static_cast<int>(std::clamp<size_t>(at_a_time / heads, 1, most));
  int per_split = (p.keys + splits - 1) / splits;
  per_split = (per_split + few.step - 1) / few.step * few.step;
  splits = std::max(1, (p.keys + per_split - 1) / per_split);
  auto blocks = static_cast<unsigned>(heads * splits);
  auto launch = [&](float* to) {
    e.launch(
        few.kernel, blocks, few.threads, few.shared, p, splits, per_split, to);
  };
  if (splits == 1) {
    return launch(nullptr);
  }
  size_t out_rows = size_t(p.batch) * p.kv_heads * all_rows;
  Scratch partial =
      e.scratch(out_rows * splits * (p.value_features + 2) * sizeof(float));
  auto* to = partial.get<float>();
  launch(to);
  e.launch(
      join_splits<T>,
      static_cast<unsigned>(out_rows),
      kJoinThreads * kJoinGroups,
      0,
      p,
      splits,
      to);
}

}  // namespace mlx::core::cuda
