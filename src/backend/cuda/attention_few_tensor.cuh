// Few rows of a half type by tensor cores. A warp takes 16 keys at a time: the
// scores are a product of up to 8 rows of queries (of 16, the others zero) and
// the keys, the result one of the values, transposed, and the weights. All sums
// are float32. Weights go in as two numbers of the half type, rounded and what
// rounding left, so they are exact to 2^-17 (float16: 2^-22) of themselves; of
// up to four rows the second numbers are columns that would be free.
//
// A product adds in any order, so lanes take features and keys as memory has
// them: 16 bytes of a row at a time, straight into registers, the next keys
// asked for when these are multiplied, the next values likewise: 64 KB of a
// multiprocessor are under way. (Copies into shared memory, which take no
// registers, came to two thirds of the bandwidth.) The lane l of a warp has
//   of keys     l/4 and l/4 + 8: features 8(l%4) and on of every 32,
//   of values   2(l%4), 2(l%4)+1 and 8 more: features 8(l/4) and on of every
//               64, two keys being brought together feature by feature,
//   of scores   the row l/4, keys 2(l%4), 2(l%4)+1 and 8 more, just as the
//               second product wants the weights,
//   of results  the rows 2(l%4) and the next, features as of values.
//
// Splits take steps of keys in turn, so that what all read at a time lies
// together.
#pragma once

#include "backend/cuda/attention_few.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/row.cuh"

namespace mlx::core::cuda {

constexpr int kTensorWarps = 4;
constexpr int kTensorThreads = 32 * kTensorWarps;
constexpr int kTensorKeys = 16;  // of a warp at a time
constexpr int kTensorStep = kTensorKeys * kTensorWarps;

/// 16 bytes that are read once.
__device__ __forceinline__ uint4 load_once(const void* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

/// A lane's keys and values of a step, and where it reads those of the next.
/// There is room for 64 * chunks features.
template <typename T, int chunks>
struct TensorKeys {
  uint4 keys[2][2 * chunks];
  uint4 values[4][chunks];
  const T* key;
  const T* value;
  int64_t key_stride;
  int64_t value_stride;
  int key_features;  // from the lane's first on
  int value_features;
  bool fills;  // no room is left over
  int step;
  int end;

  __device__ __forceinline__ TensorKeys(
      const AttentionProblem& p, const FewBlock& block, int base, int step)
      : key_stride(p.k_strides[2]),
        value_stride(p.v_strides[2]),
        step(step),
        end(p.keys) {
    int outer = static_cast<int>(threadIdx.x % 32 / 4);
    int inner = static_cast<int>(threadIdx.x % 4);
    key = block.keys<T>(p) + (base + outer) * key_stride + 8 * inner;
    value = block.values<T>(p) + (base + 2 * inner) * value_stride + 8 * outer;
    key_features = p.features - 8 * inner;
    value_features = p.value_features - 8 * outer;
    fills = p.features == 64 * chunks && p.value_features == 64 * chunks;
  }
  /// The keys from `base` on, as far as there are any, and on to the next.
  __device__ __forceinline__ void load_keys(int base) {
    if (fills && base + kTensorKeys <= end) {
      load_keys_of<true>(0);
    } else {
      load_keys_of<false>(end - base - static_cast<int>(threadIdx.x % 32 / 4));
    }
    key += step * key_stride;
  }
  __device__ __forceinline__ void load_values(int base) {
    if (fills && base + kTensorKeys <= end) {
      load_values_of<true>(0);
    } else {
      load_values_of<false>(end - base - static_cast<int>(threadIdx.x % 4) * 2);
    }
    value += step * value_stride;
  }

 private:
  template <bool all>
  __device__ __forceinline__ void load_keys_of(int left) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int c = 0; c < 2 * chunks; ++c) {
        bool exists = all || (8 * i < left && 32 * c < key_features);
        const T* from = key + 8 * i * key_stride + 32 * c;
        keys[i][c] = exists ? load_once(from) : uint4{};
      }
    }
  }
  template <bool all>
  __device__ __forceinline__ void load_values_of(int left) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int row = i % 2 + 8 * (i / 2);
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        bool exists = all || (row < left && 64 * c < value_features);
        const T* from = value + row * value_stride + 64 * c;
        values[i][c] = exists ? load_once(from) : uint4{};
      }
    }
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
      const TensorKeys<T, chunks>& from, float scale, float (&score)[4]) const {
    float products[4][4] = {};  // two each, which wait for each other less
#pragma unroll
    for (int c = 0; c < 2 * chunks; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint4& k = from.keys[i][c];
        const uint4& q = query[c];
        multiply_tiles<T>(products[i], q.x, 0, q.y, 0, k.x, k.y);
        multiply_tiles<T>(products[i + 2], q.z, 0, q.w, 0, k.z, k.w);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float sum = products[i / 2][i % 2] + products[i / 2 + 2][i % 2];
      score[i] = sum * scale;
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
      const TensorWeights& weights, const TensorKeys<T, chunks>& from) {
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      uint32_t v[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        memcpy(v[i], &from.values[i][c], 16);
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

template <int chunks>
inline constexpr int kTensorBlocks = chunks == 1   ? 4
                                     : chunks == 2 ? 2
                                                   : 1;

template <typename T, int chunks, int rows>
__global__ void __launch_bounds__(kTensorThreads, (kTensorBlocks<chunks>))
    attention_few_tensor(
        const __grid_constant__ AttentionProblem p,
        int splits,
        int keys_per_split,
        float* partial) {
  __shared__ FewFound<rows, 64 * chunks> found[kTensorWarps];
  FewBlock block(p, rows, splits, keys_per_split);
  int lane = static_cast<int>(threadIdx.x % 32);
  int warp = static_cast<int>(threadIdx.x / 32);
  int base = block.split * kTensorStep + warp * kTensorKeys;
  int step = splits * kTensorStep;
  TensorKeys<T, chunks> keys(p, block, base, step);
  if (base < p.keys) {
    keys.load_keys(base);
    keys.load_values(base);
  }
  FewRow<T> row(p, block, lane / 4 % rows);
  TensorRows<T, chunks, rows> state(row, p.features);
  float scale = p.scale * kLog2E;
  bool is_plain = sees_all(p);
  for (; base < p.keys; base += step) {
    bool has_next = base + step < p.keys;
    float score[4];
    state.multiply(keys, scale, score);
    if (has_next) {
      keys.load_keys(base + step);
    }
    if (!is_plain || base + kTensorKeys > p.keys) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int key = base + 8 * (i / 2) + lane % 4 * 2 + i % 2;
        if (key >= p.keys) {
          score[i] = -INFINITY;
        } else if (!is_plain) {
          score[i] = row.masked(p, score[i], key);
        }
      }
    }
    state.raise(score);
    TensorWeights weights = state.weigh(score);
    state.add(weights, keys);
    if (has_next) {
      keys.load_values(base + step);
    }
  }
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
      0};
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
