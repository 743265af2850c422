// Entries of a list that are attention of one token. A block takes a head, or a
// split of its keys, by online softmax: a key is read by `lanes` neighbouring
// threads, 8 features each. Query heads that share a key head read it again,
// from the L2 cache: the list takes short caches only.
#pragma once

#include <cfloat>

#include "backend/cuda/batch.h"
#include "backend/cuda/device/batch_numbers.cuh"
#include "backend/cuda/device/features.cuh"
#include "backend/cuda/device/overlap.cuh"
#include "backend/cuda/device/softmax_part.cuh"

namespace mlx::core::cuda {

constexpr int kAttentionKeys = 2;  // in flight for a group of lanes
constexpr int kAttentionWarps = kWideThreads / 32;
/// A warp's part: values, maximum, sum.
using AttentionParts = float[kAttentionWarps][kBatchFeatures + 2];

/// Asks for keys and values of a head: `rounds` of a group's from `first` on.
template <typename T, int lanes, int rounds>
__device__ __forceinline__ void ask_for_keys(
    const BatchEntry::Attention& a, int head, int first) {
  constexpr int kGroups = kWideThreads / lanes;
  auto feature = static_cast<int>(threadIdx.x % lanes) * 8;
  int64_t kv_head = head / a.group;
  auto* k = static_cast<const T*>(a.k) + kv_head * a.k_head;
  auto* v = static_cast<const T*>(a.v) + kv_head * a.v_head;
#pragma unroll
  for (int u = 0; u < rounds; ++u) {
    int64_t key = first + u * kGroups + static_cast<int>(threadIdx.x / lanes);
    if (key < a.keys && feature < a.feature_octets * 8) {
      ask_for(k + key * a.k_token + feature);
    }
    if (key < a.keys && feature < a.value_octets * 8) {
      ask_for(v + key * a.v_token + feature);
    }
  }
}

/// The keys up to the last that a mask of bools keeps: what follows adds
/// nothing, so it is not read. A mask that keeps none makes all keys equal, as
/// all scores are the lowest number then. The whole row is looked at, 16 keys a
/// thread.
__device__ __forceinline__ int count_visible(
    const BatchEntry::Attention& a, bool is_bool) {
  __shared__ int kept[kAttentionWarps];
  if (a.mask == nullptr || !is_bool) {
    return a.keys;
  }
  auto* mask = static_cast<const unsigned char*>(a.mask);
  int end = 0;
  for (int key = static_cast<int>(threadIdx.x) * 16; key < a.keys;
       key += static_cast<int>(blockDim.x) * 16) {
    if (key + 16 <= a.keys) {
      uint4 found = *reinterpret_cast<const uint4*>(mask + key);
      uint32_t words[4] = {found.x, found.y, found.z, found.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int bytes = 4 - __clz(static_cast<int>(words[i])) / 8;
        end = words[i] != 0 ? key + 4 * i + bytes : end;
      }
    } else {
      for (int i = key; i < a.keys; ++i) {
        end = mask[i] != 0 ? i + 1 : end;
      }
    }
  }
  end = __reduce_max_sync(0xffffffffu, end);
  if (threadIdx.x % 32 == 0) {
    kept[threadIdx.x / 32] = end;
  }
  __syncthreads();
  end = __reduce_max_sync(0xffffffffu, kept[threadIdx.x % kAttentionWarps]);
  return end == 0 ? a.keys : end;
}

/// What the mask says about a key, asked for with the key.
template <typename T>
struct MaskedKey {
  bool keep = true;
  T added = convert<T>(0.0f);

  __device__ __forceinline__ void load(
      const BatchEntry::Attention& a, bool is_bool, int64_t key, bool exists) {
    if (a.mask == nullptr || !exists) {
      return;
    }
    if (is_bool) {
      keep = static_cast<const bool*>(a.mask)[key];
    } else {
      added = static_cast<const T*>(a.mask)[key];
    }
  }
  /// Of a score in units of log 2.
  __device__ __forceinline__ float apply(float score) const {
    return keep ? score + to_compute(added) * kLog2E : -FLT_MAX;
  }
};

/// The sum over the keys of a thread's group of lanes.
struct SoftmaxPart {
  float most = -INFINITY;
  float sum = 0.0f;
  float values[8] = {};

  template <typename T>
  __device__ __forceinline__ void add(float score, const Features<T>& found) {
    float larger = fmaxf(most, score);
    float scaled = exp2f(most - safe(larger));
    float weight = exp2f(score - safe(larger));
    most = larger;
    sum = sum * scaled + weight;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      values[i] = fmaf(weight, found[i], values[i] * scaled);
    }
  }
};

template <typename T, int lanes>
__device__ __forceinline__ SoftmaxPart attend(
    const BatchEntry::Attention& a,
    bool is_bool,
    int head,
    int first_key,
    int end) {
  int features = a.feature_octets * 8;
  int value_features = a.value_octets * 8;
  constexpr int kGroups = kWideThreads / lanes;
  auto lane = static_cast<int>(threadIdx.x % lanes);
  auto group = static_cast<int>(threadIdx.x / lanes);
  int feature = lane * 8;
  int64_t kv_head = head / a.group;
  auto* k = static_cast<const T*>(a.k) + kv_head * a.k_head + feature;
  auto* v = static_cast<const T*>(a.v) + kv_head * a.v_head + feature;
  auto* from = static_cast<const T*>(a.q) + int64_t(head) * a.q_head + feature;
  Features<T> q;
  q.template load<true>(from, features - feature);
  SoftmaxPart part;
  for (int base = first_key; base < end; base += kGroups * kAttentionKeys) {
    Features<T> keys[kAttentionKeys];
    Features<T> values[kAttentionKeys];
    MaskedKey<T> masked[kAttentionKeys];
#pragma unroll
    for (int u = 0; u < kAttentionKeys; ++u) {
      int64_t key = base + u * kGroups + group;
      bool exists = key < end;
      keys[u].template load<true>(
          k + key * a.k_token, exists ? features - feature : 0);
      values[u].template load<true>(
          v + key * a.v_token, exists ? value_features - feature : 0);
      masked[u].load(a, is_bool, key, exists);
    }
#pragma unroll
    for (int u = 0; u < kAttentionKeys; ++u) {
      float score = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        score = fmaf(q[i], keys[u][i], score);
      }
#pragma unroll
      for (int step = lanes / 2; step > 0; step /= 2) {
        score += __shfl_xor_sync(0xffffffffu, score, step);
      }
      bool exists = base + u * kGroups + group < end;
      score = masked[u].apply(score * (a.scale * kLog2E));
      part.add(exists ? score : -INFINITY, values[u]);
    }
  }
  return part;
}

/// Joins the groups of a warp and leaves the warp's part.
template <int lanes>
__device__ __forceinline__ void leave_part(
    SoftmaxPart& part, AttentionParts& parts) {
#pragma unroll
  for (int step = lanes; step < 32; step *= 2) {
    float most = __shfl_xor_sync(0xffffffffu, part.most, step);
    float sum = __shfl_xor_sync(0xffffffffu, part.sum, step);
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      values[i] = __shfl_xor_sync(0xffffffffu, part.values[i], step);
    }
    join_partials(part.most, part.sum, part.values, most, sum, values);
  }
  auto lane = static_cast<int>(threadIdx.x % 32);
  float* to = parts[threadIdx.x / 32];
  if (lane < lanes) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      to[lane * 8 + i] = part.values[i];
    }
  }
  if (lane == 0) {
    to[kBatchFeatures] = part.most;
    to[kBatchFeatures + 1] = part.sum;
  }
}

/// Feature d of `count` parts, `width` numbers each: values, maximum, sum.
struct JoinedFeature {
  float most = -INFINITY;
  float sum = 0.0f;
  float value = 0.0f;

  __device__ __forceinline__
  JoinedFeature(const float* parts, int count, int width, int d) {
    for (int i = 0; i < count; ++i) {
      most = fmaxf(most, parts[i * width + width - 2]);
    }
    for (int i = 0; i < count; ++i) {
      const float* part = parts + i * width;
      float weight = exp2f(part[width - 2] - safe(most));
      sum += weight * part[width - 1];
      value += weight * part[d];
    }
  }
};

__device__ __forceinline__ AttentionParts& attention_parts() {
  __shared__ AttentionParts parts;
  return parts;
}

// Not inlined, as do_lines.
template <typename T, int lanes>
__device__ __noinline__ void do_attention_of(const BatchEntry& entry) {
  constexpr int kGroups = kWideThreads / lanes;
  const BatchEntry::Attention a = entry.attention;
  AttentionParts& parts = attention_parts();
  bool is_bool = static_cast<Dtype::Val>(entry.types[1]) == Dtype::Val::bool_;
  auto tasks = static_cast<int>(entry.size) * a.splits;
  auto blocks = static_cast<int>(gridDim.x);
  int task = static_cast<int>(blockIdx.x) - entry.first;
  task += task < 0 ? blocks : 0;
  if (task >= tasks) {
    return;
  }
  if (a.mask != nullptr && a.splits == 1) {
    // While the mask is looked at.
    ask_for_keys<T, lanes, kAttentionKeys>(a, task, 0);
  }
  // All blocks have a share of what is visible, in whole rounds of groups.
  int visible = count_visible(a, is_bool);
  int of_split = (visible + a.splits - 1) / a.splits;
  of_split = (of_split + kGroups - 1) / kGroups * kGroups;
  for (; task < tasks; task += blocks) {
    int head = task / a.splits;
    int first_key = (task - head * a.splits) * of_split;
    int end = min(visible, first_key + of_split);
    SoftmaxPart part = attend<T, lanes>(a, is_bool, head, first_key, end);
    leave_part<lanes>(part, parts);
    __syncthreads();
    int features = a.value_octets * 8;
    for (auto d = static_cast<int>(threadIdx.x); d < features;
         d += static_cast<int>(blockDim.x)) {
      JoinedFeature all(parts[0], kAttentionWarps, kBatchFeatures + 2, d);
      if (a.splits == 1) {
        static_cast<T*>(a.to)[head * features + d] =
            convert<T>(all.value / all.sum);
      } else {
        float* to = static_cast<float*>(a.to) + task * (features + 2);
        to[d] = all.value;
        if (d == 0) {
          to[features] = all.most;
          to[features + 1] = all.sum;
        }
      }
    }
    __syncthreads();  // before the next task's parts
  }
}

template <typename T>
__device__ void do_attention_type(const BatchEntry& entry) {
  const BatchEntry::Attention& a = entry.attention;
  if (max(a.feature_octets, a.value_octets) <= 8) {
    do_attention_of<T, 8>(entry);
  } else {
    do_attention_of<T, 16>(entry);
  }
}

__device__ __forceinline__ void do_attention(const BatchEntry& entry) {
  auto type = static_cast<Dtype::Val>(entry.types[0]);
  if (type == Dtype::Val::float16) {
    do_attention_type<half>(entry);
  } else if (type == Dtype::Val::bfloat16) {
    do_attention_type<bhalf>(entry);
  } else {
    do_attention_type<float>(entry);
  }
}

template <typename T>
__device__ void do_join_of(const BatchEntry& entry) {
  const BatchEntry::Join& join = entry.join;
  auto blocks = static_cast<int>(gridDim.x);
  int head = static_cast<int>(blockIdx.x) - entry.first;
  auto heads = static_cast<int>(entry.size);
  int features = join.value_features;
  for (head += head < 0 ? blocks : 0; head < heads; head += blocks) {
    const float* from = join.from + head * join.splits * (features + 2);
    for (auto d = static_cast<int>(threadIdx.x); d < features;
         d += static_cast<int>(blockDim.x)) {
      JoinedFeature all(from, join.splits, features + 2, d);
      static_cast<T*>(join.to)[head * features + d] =
          convert<T>(all.value / all.sum);
    }
  }
}

__device__ __forceinline__ void do_join(const BatchEntry& entry) {
  auto type = static_cast<Dtype::Val>(entry.types[0]);
  if (type == Dtype::Val::float16) {
    do_join_of<half>(entry);
  } else if (type == Dtype::Val::bfloat16) {
    do_join_of<bhalf>(entry);
  } else {
    do_join_of<float>(entry);
  }
}

}  // namespace mlx::core::cuda
