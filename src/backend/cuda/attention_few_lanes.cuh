// Few rows in float32 arithmetic throughout: float32, and half types that no
// whole packs can be read of. A key is read by `lanes` neighbouring threads, 8
// features each; a block of 128 threads works on 128 / lanes keys at a time,
// four times over, and joins its groups of lanes at the end.
#pragma once

#include "backend/cuda/attention_few.cuh"
#include "backend/cuda/device/copy_async.cuh"
#include "backend/cuda/device/features.cuh"

namespace mlx::core::cuda {

constexpr int kLaneThreads = 128;
constexpr int kLaneDepth = 4;  // keys in flight for a group of lanes

/// Keys and values on their way from memory: a thread copies what it will use
/// itself, some steps ahead, into slots of shared memory that nobody else
/// touches, so there is nothing to meet for. 16 bytes a slot.
template <typename T>
struct LaneRing {
  static constexpr int packs = Features<T>::packs;
  static constexpr int stages = sizeof(T) == 2 ? 3 : 2;
  static constexpr int slots = 2 * kLaneDepth * packs;  // of a thread and stage
  static constexpr size_t bytes = size_t(16) * kLaneThreads * slots * stages;

  uint4* mine;  // of this thread; its slots lie kLaneThreads apart

  __device__ __forceinline__ uint4* slot(int stage, int which) const {
    return mine + (stage * slots + which) * kLaneThreads;
  }
  /// The features of key (kind 0) or value (kind 1) number u.
  __device__ __forceinline__ void copy(
      int stage, int kind, int u, const T* from, bool exists) const {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      copy_or_clear(
          slot(stage, (kind * kLaneDepth + u) * packs + i),
          from + i * (8 / packs),
          exists);
    }
  }
  __device__ __forceinline__ void read(
      int stage, int kind, int u, Features<T>& to) const {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      uint4 found = *slot(stage, (kind * kLaneDepth + u) * packs + i);
      memcpy(&to.raw[i], &found, 16);
    }
  }
};

/// Where a thread reads keys and values: `slots` keys apart.
template <typename T, int lanes, bool packed>
struct LaneKeys {
  using Ring = LaneRing<T>;
  static constexpr int slots = kLaneThreads / lanes;
  static constexpr int step = slots * kLaneDepth;
  const AttentionProblem& p;
  const T* k;
  const T* v;
  int feature;
  int slot;
  int end;
  Ring ring;
  int stage = 0;

  __device__ __forceinline__
  LaneKeys(const AttentionProblem& p, const FewBlock& block, uint4* shared)
      : p(p),
        k(block.keys<T>(p)),
        v(block.values<T>(p)),
        feature(threadIdx.x % lanes * 8),
        slot(threadIdx.x / lanes),
        end(block.end),
        ring{shared + threadIdx.x} {
    if constexpr (packed) {
#pragma unroll
      for (int i = 0; i + 1 < Ring::stages; ++i) {
        fetch(i, block.first_key + i * step);
      }
    }
  }
  __device__ __forceinline__ int key(int base, int u) const {
    return base + u * slots + slot;
  }
  __device__ __forceinline__ void fetch(int to, int base) const {
#pragma unroll
    for (int u = 0; u < kLaneDepth; ++u) {
      bool is_key = key(base, u) < end && feature < p.features;
      bool is_value = key(base, u) < end && feature < p.value_features;
      // A copy of nothing still wants an address that exists.
      const T* key_at = k + key(base, u) * p.k_strides[2] + feature;
      const T* value_at = v + key(base, u) * p.v_strides[2] + feature;
      ring.copy(to, 0, u, is_key ? key_at : k, is_key);
      ring.copy(to, 1, u, is_value ? value_at : v, is_value);
    }
    close_copies();
  }
  /// The step that begins at key `base`.
  __device__ __forceinline__ void next(
      int base,
      Features<T> (&keys)[kLaneDepth],
      Features<T> (&values)[kLaneDepth]) {
    if constexpr (packed) {
      constexpr int kAhead = Ring::stages - 1;
      fetch(stage == 0 ? kAhead : stage - 1, base + kAhead * step);
      await_copies<kAhead>();
#pragma unroll
      for (int u = 0; u < kLaneDepth; ++u) {
        ring.read(stage, 0, u, keys[u]);
        ring.read(stage, 1, u, values[u]);
      }
      stage = stage == kAhead ? 0 : stage + 1;
    } else {
#pragma unroll
      for (int u = 0; u < kLaneDepth; ++u) {
        bool exists = key(base, u) < end;
        keys[u].template load<false>(
            k + key(base, u) * p.k_strides[2] + feature,
            exists ? p.features - feature : 0);
        values[u].template load<false>(
            v + key(base, u) * p.v_strides[2] + feature,
            exists ? p.value_features - feature : 0);
      }
    }
  }
};

/// A thread's 8 features of all rows: queries, and softmax so far.
template <typename T, int lanes, int rows>
struct LaneRows {
  FewRow<T> row[rows];
  float q[rows][8];
  float most[rows];
  float sum[rows];
  float acc[rows][8];

  template <bool packed>
  __device__ __forceinline__ void begin(
      const AttentionProblem& p, const FewBlock& block, int feature) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      row[r] = FewRow<T>(p, block, r);
      Features<T> found;
      found.template load<packed>(row[r].query + feature, p.features - feature);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        q[r][i] = found[i] * (p.scale * kLog2E);
        acc[r][i] = 0.0f;
      }
      most[r] = -INFINITY;
      sum[r] = 0.0f;
    }
  }
  /// The product of row r and a key, for all lanes of the key.
  __device__ __forceinline__ float product(
      int r, const Features<T>& key) const {
    float product = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      product = fmaf(q[r][i], key[i], product);
    }
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2) {
      product += __shfl_xor_sync(0xffffffffu, product, step);
    }
    return product;
  }
  /// Adds keys of these scores to row r.
  __device__ __forceinline__ void add(
      int r,
      const float (&score)[kLaneDepth],
      const Features<T> (&values)[kLaneDepth]) {
    float larger = most[r];
#pragma unroll
    for (float x : score) {
      larger = fmaxf(larger, x);
    }
    float scaled = exp2f(most[r] - safe(larger));
    most[r] = larger;
    sum[r] *= scaled;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      acc[r][i] *= scaled;
    }
#pragma unroll
    for (int u = 0; u < kLaneDepth; ++u) {
      float weight = exp2f(score[u] - safe(larger));
      sum[r] += weight;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        acc[r][i] = fmaf(weight, values[u][i], acc[r][i]);
      }
    }
  }
  /// Joins row r with the group of lanes `step` away.
  __device__ __forceinline__ void join(int r, int step) {
    float other = __shfl_xor_sync(0xffffffffu, most[r], step);
    float larger = fmaxf(most[r], other);
    float a = exp2f(most[r] - safe(larger));
    float b = exp2f(other - safe(larger));
    most[r] = larger;
    sum[r] = sum[r] * a + __shfl_xor_sync(0xffffffffu, sum[r], step) * b;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float theirs = __shfl_xor_sync(0xffffffffu, acc[r][i], step);
      acc[r][i] = acc[r][i] * a + theirs * b;
    }
  }
  /// Joins the groups of the warp.
  __device__ __forceinline__ void leave(
      FewFound<rows, lanes * 8>& to, int feature) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int step = lanes; step < 32; step *= 2) {
        join(r, step);
      }
      if (threadIdx.x % 32 < lanes) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          to[r][feature + i] = acc[r][i];
        }
        to[r][lanes * 8] = most[r];
        to[r][lanes * 8 + 1] = sum[r];
      }
    }
  }
};

template <typename T, int lanes, int rows, bool packed>
__global__ void __launch_bounds__(kLaneThreads) attention_few_lanes(
    const __grid_constant__ AttentionProblem p,
    int splits,
    int keys_per_split,
    float* partial) {
  using Keys = LaneKeys<T, lanes, packed>;
  using Found = FewFound<rows, lanes * 8>;
  static_assert(sizeof(Found) * kLaneThreads / 32 <= LaneRing<T>::bytes);
  extern __shared__ uint4 shared[];
  FewBlock block(p, rows, splits, keys_per_split);
  Keys keys(p, block, shared);
  LaneRows<T, lanes, rows> state;
  state.template begin<packed>(p, block, keys.feature);
  bool is_plain = sees_all(p);
  for (int base = block.first_key; base < block.end; base += Keys::step) {
    Features<T> key[kLaneDepth];
    Features<T> value[kLaneDepth];
    keys.next(base, key, value);
    float score[rows][kLaneDepth];
#pragma unroll
    for (int u = 0; u < kLaneDepth; ++u) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        score[r][u] = state.product(r, key[u]);
      }
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int u = 0; u < kLaneDepth; ++u) {
        int at = keys.key(base, u);
        if (at >= block.end) {
          score[r][u] = -INFINITY;
        } else if (!is_plain) {
          score[r][u] = state.row[r].masked(p, score[r][u], at);
        }
      }
      state.add(r, score[r], value);
    }
  }
  await_copies<0>();
  __syncthreads();  // nobody reads or fills the ring any more
  auto* found = reinterpret_cast<Found*>(shared);
  state.leave(found[threadIdx.x / 32], keys.feature);
  __syncthreads();
  finish_block<T, rows, lanes * 8>(p, block, found, splits, partial);
}

template <typename T, int lanes, int rows, bool packed>
void launch_lanes(const AttentionProblem& p, Encoder& e) {
  constexpr FewKernel few{
      attention_few_lanes<T, lanes, rows, packed>,
      kLaneThreads,
      rows,
      LaneKeys<T, lanes, packed>::step,
      LaneRing<T>::bytes};
  static const size_t at_a_time = blocks_at_a_time(few);
  launch_few<T>(few, at_a_time, p, e);
}

// What is not packed is rare: one number of rows for all.
template <typename T, bool packed, int lanes>
void launch_lanes_rows(const AttentionProblem& p, Encoder& e) {
  if constexpr (packed) {
    int rows = p.group * p.tokens;
    if (rows == 1) {
      return launch_lanes<T, lanes, 1, true>(p, e);
    }
    if (rows > 4) {
      return launch_lanes<T, lanes, 8, true>(p, e);
    }
  }
  launch_lanes<T, lanes, 4, packed>(p, e);
}

template <typename T, bool packed>
void attention_by_lanes(const AttentionProblem& p, Encoder& e) {
  int features = std::max(p.features, p.value_features);
  if (features <= 64) {
    launch_lanes_rows<T, packed, 8>(p, e);
  } else if (features <= 128) {
    launch_lanes_rows<T, packed, 16>(p, e);
  } else {
    launch_lanes_rows<T, packed, 32>(p, e);
  }
}

}  // namespace mlx::core::cuda
