// Attention of few query rows (decoding). All query rows that share a key head
// are taken together, so keys and values are read once; the keys are cut into
// splits, so that all multiprocessors read. Limit: bytes of keys and values
// over bandwidth.
//
// A key is read by `lanes` neighbouring threads, 8 features each; a block of
// 128 threads works on 128 / lanes keys at a time, four times over, with the
// running maximum and sum of each group of lanes kept in registers (online
// softmax, Milakov and Gimelshein 2018); groups are joined at the end, splits
// by a second kernel.
#pragma once

#include <algorithm>
#include <cfloat>

#include "backend/cuda/attention.h"
#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

constexpr int kFewThreads = 128;
constexpr int kFewWarps = kFewThreads / 32;
constexpr int kFewDepth = 4;  // keys in flight for a group of lanes
constexpr float kLog2E = 1.4426950408889634f;

/// 8 features as memory has them. Loading is apart from converting, so that
/// many loads are under way before the first is waited for.
template <typename T>
struct Features {
  static constexpr int packs = sizeof(T) * 8 / 16;
  Pack<T, 8 / packs> raw[packs];

  /// `valid` of them exist; with `packed` all or none.
  template <bool packed>
  __device__ __forceinline__ void load(const T* from, int valid) {
    if constexpr (packed) {
#pragma unroll
      for (int i = 0; i < packs; ++i) {
        raw[i] = valid > 0 ? load_pack<8 / packs>(from + i * (8 / packs))
                           : Pack<T, 8 / packs>{};
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        raw[i * packs / 8][i % (8 / packs)] =
            i < valid ? from[i] : convert<T>(0.0f);
      }
    }
  }
  __device__ __forceinline__ float operator[](int i) const {
    return to_compute(raw[i * packs / 8][i % (8 / packs)]);
  }
};

/// Keys and values on their way from memory: a thread copies what it will use
/// itself, some steps ahead, into slots of shared memory that nobody else
/// touches, so there is nothing to meet for. 16 bytes a slot.
template <typename T, int depth>
struct Ring {
  static constexpr int packs = Features<T>::packs;
  static constexpr int stages = sizeof(T) == 2 ? 3 : 2;
  static constexpr int slots = 2 * depth * packs;  // of a thread and stage
  static constexpr size_t bytes = size_t(16) * kFewThreads * slots * stages;

  uint4* mine;  // of this thread; its slots lie kFewThreads apart

  __device__ __forceinline__ uint4* slot(int stage, int which) const {
    return mine + (stage * slots + which) * kFewThreads;
  }
  /// The features of key (kind 0) or value (kind 1) number u.
  __device__ __forceinline__ void copy(
      int stage, int kind, int u, const T* from, bool exists) const {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      uint4* to = slot(stage, (kind * depth + u) * packs + i);
      auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
      int size = exists ? 16 : 0;  // what does not exist becomes zero
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address),
          "l"(from + i * (8 / packs)),
          "r"(size)
          : "memory");
    }
  }
  __device__ __forceinline__ static void close_stage() {
    asm volatile("cp.async.commit_group;");
  }
  __device__ __forceinline__ static void await_oldest() {
    asm volatile("cp.async.wait_group %0;" ::"n"(stages - 1) : "memory");
  }
  __device__ __forceinline__ static void await_all() {
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  __device__ __forceinline__ void read(
      int stage, int kind, int u, Features<T>& to) const {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      uint4 found = *slot(stage, (kind * depth + u) * packs + i);
      memcpy(&to.raw[i], &found, 16);
    }
  }
};

// The score of one row and key in units of log 2, from its product.
template <typename T>
__device__ __forceinline__ float finish_score(
    const AttentionProblem& p,
    float product,
    const char* mask,
    int key,
    int limit) {
  float score = product;
  if (p.mask_kind == MaskKind::boolean) {
    const bool* keep = reinterpret_cast<const bool*>(mask);
    score = keep[key * p.mask_strides[3]] ? score : -FLT_MAX;
  } else if (p.mask_kind == MaskKind::additive) {
    const T* add = reinterpret_cast<const T*>(mask);
    score += to_compute(add[key * p.mask_strides[3]]) * kLog2E;
  }
  return key < limit ? score : -FLT_MAX;
}

__device__ __forceinline__ float safe(float maximum) {
  return maximum == -INFINITY ? 0.0f : maximum;
}

// Joins two partial softmaxes: (maximum, sum, weighted values).
__device__ __forceinline__ void join_partials(
    float& m,
    float& l,
    float (&acc)[8],
    float m2,
    float l2,
    const float (&acc2)[8]) {
  float most = fmaxf(m, m2);
  float a = exp2f(m - safe(most));
  float b = exp2f(m2 - safe(most));
  m = most;
  l = l * a + l2 * b;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    acc[i] = acc[i] * a + acc2[i] * b;
  }
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

// One block a row: joins what its splits found. Four groups of threads take
// every fourth split each.
constexpr int kJoinGroups = 4;
constexpr int kMostSplits = 512;

template <typename T>
__global__ void __launch_bounds__(kFewThreads* kJoinGroups)
    join_splits(AttentionProblem p, int splits, const float* partial) {
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
  int group = threadIdx.x / kFewThreads;
  int first = threadIdx.x % kFewThreads;
  for (int d = first; d < p.value_features; d += kFewThreads) {
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

template <typename T, int lanes, int rows, bool packed>
__global__ void __launch_bounds__(kFewThreads) attention_few_kernel(
    AttentionProblem p, int splits, int keys_per_split, float* partial) {
  constexpr int slots = kFewThreads / lanes;
  int split = blockIdx.x % splits;
  int head = blockIdx.x / splits % (p.batch * p.kv_heads);
  int row_group = blockIdx.x / splits / (p.batch * p.kv_heads);
  int b = head / p.kv_heads;
  int kv_head = head % p.kv_heads;
  int lane = threadIdx.x % lanes;
  int slot = threadIdx.x / lanes;
  int feature = lane * 8;
  int row0 = row_group * rows;
  int row_count = min(rows, p.group * p.tokens - row0);

  float q[rows][8];
  float m[rows];
  float l[rows];
  float acc[rows][8];
  const char* mask[rows];
  int limit[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    int row = row0 + min(r, row_count - 1);
    int t = row % p.tokens;
    int h = kv_head * p.group + row / p.tokens;
    const T* from = static_cast<const T*>(p.q) + b * p.q_strides[0] +
                    h * p.q_strides[1] + t * p.q_strides[2] + feature;
    Features<T> found;
    found.template load<packed>(from, p.features - feature);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      q[r][i] = found[i] * (p.scale * kLog2E);
      acc[r][i] = 0.0f;
    }
    m[r] = -INFINITY;
    l[r] = 0.0f;
    limit[r] = p.causal ? t + p.keys - p.tokens + 1 : p.keys;
    int mask_size = p.mask_kind == MaskKind::boolean ? 1 : sizeof(T);
    mask[r] = static_cast<const char*>(p.mask) +
              (b * p.mask_strides[0] + h * p.mask_strides[1] +
               t * p.mask_strides[2]) *
                  mask_size;
  }

  const T* k0 = static_cast<const T*>(p.k) + b * p.k_strides[0] +
                kv_head * p.k_strides[1];
  const T* v0 = static_cast<const T*>(p.v) + b * p.v_strides[0] +
                kv_head * p.v_strides[1];
  const T* k = k0 + feature;
  const T* v = v0 + feature;
  bool is_plain = p.mask_kind == MaskKind::none && !p.causal;
  int first_key = split * keys_per_split;
  int end = min(p.keys, first_key + keys_per_split);
  constexpr int step = slots * kFewDepth;
  extern __shared__ uint4 shared[];
  Ring<T, kFewDepth> ring{shared + threadIdx.x};
  constexpr int stages = Ring<T, kFewDepth>::stages;
  auto fetch = [&](int stage, int base) {
#pragma unroll
    for (int u = 0; u < kFewDepth; ++u) {
      int key = base + u * slots + slot;
      bool is_key = key < end && feature < p.features;
      bool is_value = key < end && feature < p.value_features;
      // A copy of nothing still wants an address that exists.
      ring.copy(stage, 0, u, is_key ? k + key * p.k_strides[2] : k0, is_key);
      ring.copy(
          stage, 1, u, is_value ? v + key * p.v_strides[2] : v0, is_value);
    }
    ring.close_stage();
  };
  if constexpr (packed) {
#pragma unroll
    for (int i = 0; i + 1 < stages; ++i) {
      fetch(i, first_key + i * step);
    }
  }
  int stage = 0;
  for (int base = first_key; base < end; base += step) {
    float score[kFewDepth][rows];
    Features<T> values[kFewDepth];
    Features<T> found[kFewDepth];
    if constexpr (packed) {
      fetch(stage == 0 ? stages - 1 : stage - 1, base + (stages - 1) * step);
      ring.await_oldest();
#pragma unroll
      for (int u = 0; u < kFewDepth; ++u) {
        ring.read(stage, 0, u, found[u]);
        ring.read(stage, 1, u, values[u]);
      }
      stage = stage + 1 == stages ? 0 : stage + 1;
    } else {
#pragma unroll
      for (int u = 0; u < kFewDepth; ++u) {
        int key = base + u * slots + slot;
        bool exists = key < end;
        found[u].template load<false>(
            k + key * p.k_strides[2], exists ? p.features - feature : 0);
        values[u].template load<false>(
            v + key * p.v_strides[2], exists ? p.value_features - feature : 0);
      }
    }
#pragma unroll
    for (int u = 0; u < kFewDepth; ++u) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          sum = fmaf(q[r][i], found[u][i], sum);
        }
#pragma unroll
        for (int step = lanes / 2; step > 0; step /= 2) {
          sum += __shfl_xor_sync(0xffffffffu, sum, step);
        }
        score[u][r] = sum;
      }
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      float most = m[r];
#pragma unroll
      for (int u = 0; u < kFewDepth; ++u) {
        int key = base + u * slots + slot;
        if (key >= end) {
          score[u][r] = -INFINITY;
        } else if (!is_plain) {
          score[u][r] = finish_score<T>(p, score[u][r], mask[r], key, limit[r]);
        }
        most = fmaxf(most, score[u][r]);
      }
      float scaled = exp2f(m[r] - safe(most));
      m[r] = most;
      l[r] *= scaled;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        acc[r][i] *= scaled;
      }
#pragma unroll
      for (int u = 0; u < kFewDepth; ++u) {
        float weight = exp2f(score[u][r] - safe(most));
        l[r] += weight;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          acc[r][i] = fmaf(weight, values[u][i], acc[r][i]);
        }
      }
    }
  }

  using Joined = float[rows][lanes * 8 + 2];
  static_assert(sizeof(Joined) * kFewWarps <= Ring<T, kFewDepth>::bytes);
  ring.await_all();
  __syncthreads();  // nobody reads or fills the ring any more
  auto* joined = reinterpret_cast<Joined*>(shared);
  int warp = threadIdx.x / 32;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int step = lanes; step < 32; step *= 2) {
      float m2 = __shfl_xor_sync(0xffffffffu, m[r], step);
      float l2 = __shfl_xor_sync(0xffffffffu, l[r], step);
      float acc2[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        acc2[i] = __shfl_xor_sync(0xffffffffu, acc[r][i], step);
      }
      join_partials(m[r], l[r], acc[r], m2, l2, acc2);
    }
    if (threadIdx.x % 32 < lanes) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        joined[warp][r][feature + i] = acc[r][i];
      }
      joined[warp][r][lanes * 8] = m[r];
      joined[warp][r][lanes * 8 + 1] = l[r];
    }
  }
  __syncthreads();
  int width = p.value_features + 2;
  for (int at = threadIdx.x; at < row_count * p.value_features;
       at += kFewThreads) {
    int r = at / p.value_features;
    int d = at % p.value_features;
    float most = -INFINITY;
    for (int w = 0; w < kFewWarps; ++w) {
      most = fmaxf(most, joined[w][r][lanes * 8]);
    }
    float sum = 0.0f;
    float value = 0.0f;
    for (int w = 0; w < kFewWarps; ++w) {
      float weight = exp2f(joined[w][r][lanes * 8] - safe(most));
      sum += weight * joined[w][r][lanes * 8 + 1];
      value += weight * joined[w][r][d];
    }
    int row = row0 + r;
    int64_t out_row = (int64_t(b) * p.kv_heads + kv_head) * p.group * p.tokens;
    out_row += row;
    if (splits > 1) {
      float* to = partial + (out_row * splits + split) * width;
      to[d] = value;
      if (d == 0) {
        to[p.value_features] = most;
        to[p.value_features + 1] = sum;
      }
      continue;
    }
    finish_row<T>(
        p, kv_head * p.group + row / p.tokens, out_row, d, value, most, sum);
  }
}

// Blocks of a kernel that run at a time.
template <typename Kernel>
size_t blocks_at_a_time(Kernel kernel, size_t shared) {
  int per_processor = 1;
  check(
      cudaFuncSetAttribute(
          kernel,
          cudaFuncAttributeMaxDynamicSharedMemorySize,
          static_cast<int>(shared)),
      "asking for shared memory");
  check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &per_processor, kernel, kFewThreads, shared),
      "asking for the occupancy");
  return size_t(per_processor) * device_facts().multiprocessors;
}

template <typename T, int lanes, int rows, bool packed>
void launch_few(const AttentionProblem& p, Encoder& e) {
  auto* kernel = attention_few_kernel<T, lanes, rows, packed>;
  constexpr int step = kFewThreads / lanes * kFewDepth;
  int all_rows = p.group * p.tokens;
  size_t heads = size_t(p.batch) * p.kv_heads * ((all_rows + rows - 1) / rows);
  // One round of blocks. A split is worth its share of the second kernel from
  // 4 steps on.
  constexpr size_t shared = Ring<T, kFewDepth>::bytes;
  static const size_t at_a_time = blocks_at_a_time(kernel, shared);
  size_t most = std::clamp(p.keys / (4 * step), 1, kMostSplits);
  auto splits =
      static_cast<int>(std::clamp<size_t>(at_a_time / heads, 1, most));
  int per_split = (p.keys + splits - 1) / splits;
  per_split = (per_split + step - 1) / step * step;
  splits = std::max(1, (p.keys + per_split - 1) / per_split);
  auto blocks = static_cast<unsigned>(heads * splits);
  if (splits == 1) {
    e.launch(
        kernel, blocks, kFewThreads, shared, p, splits, per_split, nullptr);
    return;
  }
  size_t out_rows = size_t(p.batch) * p.kv_heads * all_rows;
  Scratch partial =
      e.scratch(out_rows * splits * (p.value_features + 2) * sizeof(float));
  auto* to = partial.get<float>();
  e.launch(kernel, blocks, kFewThreads, shared, p, splits, per_split, to);
  e.launch(
      join_splits<T>,
      static_cast<unsigned>(out_rows),
      kFewThreads * kJoinGroups,
      0,
      p,
      splits,
      to);
}

template <typename T, int lanes, int rows>
void launch_few_layout(const AttentionProblem& p, Encoder& e) {
  if (p.aligned && p.features % 8 == 0 && p.value_features % 8 == 0) {
    launch_few<T, lanes, rows, true>(p, e);
  } else {
    launch_few<T, lanes, rows, false>(p, e);
  }
}

template <typename T, int lanes>
void launch_few_rows(const AttentionProblem& p, Encoder& e) {
  int rows = p.group * p.tokens;
  if (rows == 1) {
    launch_few_layout<T, lanes, 1>(p, e);
  } else if (rows <= 4) {
    launch_few_layout<T, lanes, 4>(p, e);
  } else {
    launch_few_layout<T, lanes, 8>(p, e);
  }
}

template <typename T>
void attention_few_of(const AttentionProblem& p, Encoder& e) {
  int features = std::max(p.features, p.value_features);
  if (features <= 64) {
    launch_few_rows<T, 8>(p, e);
  } else if (features <= 128) {
    launch_few_rows<T, 16>(p, e);
  } else {
    launch_few_rows<T, 32>(p, e);
  }
}

}  // namespace mlx::core::cuda
