// Few rows of a half type by tensor cores. A warp takes 16 keys at a time: the
// scores are a product of up to 8 rows of queries (of 16, the others zero) and
// the keys, the result one of the values, transposed, and the weights. All sums
// are float32. Weights go in as two numbers of the half type, rounded and what
// rounding left, so they are exact to 2^-17 (float16: 2^-22) of themselves; of
// up to four rows the second numbers are columns that would be free.
//
// A product adds in any order, so lanes take features and keys as memory has
// them: 16 bytes of a row at a time, of which a lane copies what it will use
// itself into a ring in shared memory, two steps ahead. 64 KB of a
// multiprocessor are under way then. The lane l of a warp has
//   of keys     l/4 and l/4 + 8: features 8(l%4) and on of every 32,
//   of values   2(l%4), 2(l%4)+1 and 8 more: features 8(l/4) and on of every
//               64, two keys being brought together feature by feature,
//   of scores   the row l/4, keys 2(l%4), 2(l%4)+1 and 8 more, just as the
//               second product wants the weights,
//   of results  the rows 2(l%4) and the next, features as of values.
#pragma once

#include "backend/cuda/attention_few.cuh"
#include "backend/cuda/device/copy_async.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/row.cuh"

namespace mlx::core::cuda {

constexpr int kTensorWarps = 4;
constexpr int kTensorThreads = 32 * kTensorWarps;
constexpr int kTensorStages = 3;
constexpr int kTensorKeys = 16;  // of a warp at a time
constexpr int kTensorStep = kTensorKeys * kTensorWarps;

/// The keys and values of a warp's steps on their way through slots of 16
/// bytes, which are the lane's own. There is room for 64 * chunks features.
template <typename T, int chunks>
struct TensorKeys {
  static constexpr int slots = 8 * chunks;  // half of them for values
  static constexpr size_t bytes =
      size_t(16) * kTensorThreads * slots * kTensorStages;

  uint4* mine;  // slots lie kTensorThreads apart
  const T* keys;
  const T* values;
  const T* key;  // the lane's first, were the step's first key 0
  const T* value;
  int64_t key_stride;
  int64_t value_stride;
  int features;  // from the lane's first on
  int value_features;
  int end;  // of the keys, counted from the lane's first
  int value_end;

  __device__ __forceinline__
  TensorKeys(const AttentionProblem& p, const FewBlock& block, uint4* shared) {
    int outer = static_cast<int>(threadIdx.x % 32 / 4);
    int inner = static_cast<int>(threadIdx.x % 4);
    mine = shared + threadIdx.x;
    keys = block.keys<T>(p);
    values = block.values<T>(p);
    key_stride = p.k_strides[2];
    value_stride = p.v_strides[2];
    key = keys + outer * key_stride + 8 * inner;
    value = values + 2 * inner * value_stride + 8 * outer;
    features = p.features - 8 * inner;
    value_features = p.value_features - 8 * outer;
    end = block.end - outer;
    value_end = block.end - 2 * inner;
  }
  __device__ __forceinline__ uint4* slot(int stage, int which) const {
    return mine + (stage * slots + which) * kTensorThreads;
  }
  /// Pack c of the lane's key number 0 or 1.
  __device__ __forceinline__ uint4 key_pack(int stage, int i, int c) const {
    return *slot(stage, i * 2 * chunks + c);
  }
  /// Pack c of the lane's value number 0 to 3.
  __device__ __forceinline__ uint4 value_pack(int stage, int i, int c) const {
    return *slot(stage, 4 * chunks + i * chunks + c);
  }
  /// Begins to copy the step whose first key is `base`.
  __device__ __forceinline__ void fetch(int stage, int base) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int at = base + 8 * i;
      const T* from = key + at * key_stride;
#pragma unroll
      for (int c = 0; c < 2 * chunks; ++c) {
        bool exists = at < end && 32 * c < features;
        uint4* to = slot(stage, i * 2 * chunks + c);
        copy_or_clear(to, exists ? from + 32 * c : keys, exists);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int at = base + i % 2 + 8 * (i / 2);
      const T* from = value + at * value_stride;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        bool exists = at < value_end && 64 * c < value_features;
        uint4* to = slot(stage, 4 * chunks + i * chunks + c);
        copy_or_clear(to, exists ? from + 64 * c : values, exists);
      }
    }
    close_copies();
  }
};

/// The weights of a step as the second product wants them: rounded, and with 8
/// rows what rounding left.
struct TensorWeights {
  uint32_t high[2];
  uint32_t low[2];
};

/// The softmax of a warp so far. Maximum and sum are those of the row l/4, the
/// sum only the lane's part.
template <typename T, int chunks, int rows>
struct TensorRows {
  static_assert(rows == 4 || rows == 8);
  uint4 query[2 * chunks];
  float most = -INFINITY;
  float sum = 0.0f;
  float acc[4 * chunks][4] = {};

  __device__ __forceinline__ TensorRows(const FewRow<T>& row, int features) {
    int feature = 8 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int c = 0; c < 2 * chunks; ++c) {
      const T* from = row.query + feature + 32 * c;
      query[c] = feature + 32 * c < features
                     ? *reinterpret_cast<const uint4*>(from)
                     : uint4{};
    }
  }

  /// Products of the row and the lane's four keys.
  __device__ __forceinline__ void multiply(
      const TensorKeys<T, chunks>& keys, int stage, float (&score)[4]) const {
    float products[2][4] = {};
#pragma unroll
    for (int c = 0; c < 2 * chunks; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        uint4 k = keys.key_pack(stage, i, c);
        const uint4& q = query[c];
        multiply_tiles<T>(products[i], q.x, 0, q.y, 0, k.x, k.y);
        multiply_tiles<T>(products[i], q.z, 0, q.w, 0, k.z, k.w);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      score[i] = products[i / 2][i % 2];
    }
  }

  /// Brings the maximum up to these scores. All is scaled where one row's has
  /// grown, which soon is rare.
  __device__ __forceinline__ void raise(const float (&score)[4]) {
    float larger = fmaxf(fmaxf(score[0], score[1]), fmaxf(score[2], score[3]));
    larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 1));
    larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 2));
    if (!__any_sync(0xffffffffu, larger > most)) {
      return;
    }
    larger = fmaxf(larger, most);
    float scaled = exp2f(most - safe(larger));
    most = larger;
    sum *= scaled;
    int first = static_cast<int>(threadIdx.x % 4) * 8;
    float even = __shfl_sync(0xffffffffu, scaled, first);
    float odd = __shfl_sync(0xffffffffu, scaled, first + 4);
#pragma unroll
    for (auto& four : acc) {
      four[0] *= even;
      four[1] *= odd;
      four[2] *= even;
      four[3] *= odd;
    }
  }

  /// exp2 of the scores, which enter the sum.
  __device__ __forceinline__ TensorWeights weigh(const float (&score)[4]) {
    float high[4];
    float low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float weight = exp2f(score[i] - safe(most));
      sum += weight;
      high[i] = to_compute(convert<T>(weight));
      low[i] = weight - high[i];
      if (rows == 4) {  // rows 4 to 7 are 0 to 3 again
        high[i] = threadIdx.x % 32 < 16 ? high[i] : low[i];
      }
    }
    return {
        {join_halves<T>(high[0], high[1]), join_halves<T>(high[2], high[3])},
        {join_halves<T>(low[0], low[1]), join_halves<T>(low[2], low[3])}};
  }

  __device__ __forceinline__ void add(
      const TensorWeights& weights,
      const TensorKeys<T, chunks>& keys,
      int stage) {
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      uint32_t v[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        uint4 pack = keys.value_pack(stage, i, c);
        memcpy(v[i], &pack, 16);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t a[4] = {
            __byte_perm(v[0][j], v[1][j], 0x5410),
            __byte_perm(v[0][j], v[1][j], 0x7632),
            __byte_perm(v[2][j], v[3][j], 0x5410),
            __byte_perm(v[2][j], v[3][j], 0x7632)};
        float(&to)[4] = acc[4 * c + j];
        const uint32_t(&b)[2] = weights.high;
        multiply_tiles<T>(to, a[0], a[1], a[2], a[3], b[0], b[1]);
        if (rows == 8) {
          const uint32_t(&rest)[2] = weights.low;
          multiply_tiles<T>(to, a[0], a[1], a[2], a[3], rest[0], rest[1]);
        }
      }
    }
  }

  __device__ __forceinline__ void leave(FewFound<rows, 64 * chunks>& to) {
    constexpr int kFeatures = 64 * chunks;
    int outer = static_cast<int>(threadIdx.x % 32 / 4);
    int inner = static_cast<int>(threadIdx.x % 4);
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (inner == 0 && outer < rows) {
      to[outer][kFeatures] = most;
      to[outer][kFeatures + 1] = sum;
    }
#pragma unroll
    for (int i = 0; i < 4 * chunks; ++i) {
      if (rows == 4) {
#pragma unroll
        for (float& x : acc[i]) {
          x += __shfl_xor_sync(0xffffffffu, x, 2);
        }
      }
      if (2 * inner < rows) {
        int feature = 64 * (i / 4) + 8 * outer + 2 * (i % 4);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          to[2 * inner + j % 2][feature + j / 2] = acc[i][j];
        }
      }
    }
  }
};

template <typename T, int chunks, int rows>
__global__ void __launch_bounds__(kTensorThreads) attention_few_tensor(
    const __grid_constant__ AttentionProblem p,
    int splits,
    int keys_per_split,
    float* partial) {
  using Keys = TensorKeys<T, chunks>;
  using Found = FewFound<rows, 64 * chunks>;
  static_assert(sizeof(Found) * kTensorWarps <= Keys::bytes);
  constexpr int kAhead = kTensorStages - 1;
  extern __shared__ uint4 shared[];
  FewBlock block(p, rows, splits, keys_per_split);
  Keys keys(p, block, shared);
  int lane = static_cast<int>(threadIdx.x % 32);
  int warp = static_cast<int>(threadIdx.x / 32);
  int base = block.first_key + kTensorKeys * warp;
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    keys.fetch(i, base + i * kTensorStep);
  }
  FewRow<T> row(p, block, lane / 4 % rows);
  TensorRows<T, chunks, rows> state(row, p.features);
  float scale = p.scale * kLog2E;
  bool is_plain = sees_all(p);
  int stage = 0;
  for (; base < block.end; base += kTensorStep) {
    keys.fetch(stage == 0 ? kAhead : stage - 1, base + kAhead * kTensorStep);
    await_copies<kAhead>();
    float score[4];
    state.multiply(keys, stage, score);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int key = base + 8 * (i / 2) + lane % 4 * 2 + i % 2;
      score[i] *= scale;
      if (key >= block.end) {
        score[i] = -INFINITY;
      } else if (!is_plain) {
        score[i] = row.masked(p, score[i], key);
      }
    }
    state.raise(score);
    TensorWeights weights = state.weigh(score);
    state.add(weights, keys, stage);
    stage = stage == kAhead ? 0 : stage + 1;
  }
  await_copies<0>();
  __syncthreads();  // nobody reads or fills the ring any more
  auto* found = reinterpret_cast<Found*>(shared);
  state.leave(found[warp]);
  __syncthreads();
  finish_block<T, rows, 64 * chunks>(p, block, found, splits, partial);
}

template <typename T, int chunks, int rows>
void launch_tensor(const AttentionProblem& p, Encoder& e) {
  constexpr FewKernel few{
      attention_few_tensor<T, chunks, rows>,
      kTensorThreads,
      rows,
      kTensorStep,
      TensorKeys<T, chunks>::bytes};
  static const size_t at_a_time = blocks_at_a_time(few);
  launch_few<T>(few, at_a_time, p, e);
}

template <typename T, int chunks>
void launch_tensor_rows(const AttentionProblem& p, Encoder& e) {
  if (p.group * p.tokens <= 4) {
    launch_tensor<T, chunks, 4>(p, e);
  } else {
    launch_tensor<T, chunks, 8>(p, e);
  }
}

template <typename T>
void attention_by_tensor(const AttentionProblem& p, Encoder& e) {
  int features = std::max(p.features, p.value_features);
  if (features <= 64) {
    launch_tensor_rows<T, 1>(p, e);
  } else if (features <= 128) {
    launch_tensor_rows<T, 2>(p, e);
  } else {
    launch_tensor_rows<T, 4>(p, e);
  }
}

}  // namespace mlx::core::cuda
