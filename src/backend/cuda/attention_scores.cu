// Attention of many rows by way of the matrix of scores: two dense products in
// float32 with a softmax between them, a block of query rows at a time so that
// the scores stay within a bound. Takes every shape, type, mask and sink; the
// flash kernels of cuDNN are faster where they apply.
#include <algorithm>
#include <cfloat>

#include "backend/cuda/attention.h"
#include "backend/cuda/device/types.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/gemm.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr size_t kMostScores = size_t(64) << 20;  // of 4 bytes each

// Where a block of query rows lies: scores are (batch, head, row, key).
struct RowBlock {
  int first;
  int rows;
};

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Of all threads of a block, in all of them.
template <typename F>
__device__ float over_block(float value, F f) {
  __shared__ float found[32];
  for (int step = 16; step > 0; step /= 2) {
    value = f(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  if (threadIdx.x % 32 == 0) {
    found[threadIdx.x / 32] = value;
  }
  __syncthreads();
  value = found[0];
  for (int i = 1; i < kThreads / 32; ++i) {
    value = f(value, found[i]);
  }
  __syncthreads();
  return value;
}

template <typename T>
__device__ float masked_score(
    const AttentionProblem& p,
    float product,
    int64_t mask_at,
    int key,
    int limit) {
  float score = product * p.scale;
  int64_t at = mask_at + key * p.mask_strides[3];
  if (p.mask_kind == MaskKind::boolean) {
    score = static_cast<const bool*>(p.mask)[at] ? score : -FLT_MAX;
  } else if (p.mask_kind == MaskKind::additive) {
    score += to_compute(static_cast<const T*>(p.mask)[at]);
  }
  return key < limit ? score : -FLT_MAX;
}

// A block of threads a row of scores: scale, mask, softmax, in place.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    softmax_of_scores(AttentionProblem p, RowBlock block, float* scores) {
  int64_t row = blockIdx.x;
  int heads = p.kv_heads * p.group;
  int t = block.first + static_cast<int>(row % block.rows);
  int h = static_cast<int>(row / block.rows % heads);
  int64_t b = row / block.rows / heads;
  int limit = p.causal ? t + p.keys - p.tokens + 1 : p.keys;
  int64_t mask_at =
      b * p.mask_strides[0] + h * p.mask_strides[1] + t * p.mask_strides[2];
  scores += row * p.keys;
  float most = -INFINITY;
  for (int key = threadIdx.x; key < p.keys; key += kThreads) {
    float score = masked_score<T>(p, scores[key], mask_at, key, limit);
    scores[key] = score;
    most = fmaxf(most, score);
  }
  most = over_block(most, Larger());
  float sink = -INFINITY;
  if (p.sinks != nullptr) {
    sink = to_compute(static_cast<const T*>(p.sinks)[h * p.sink_stride]);
    most = fmaxf(most, sink);
  }
  float sum = 0.0f;
  for (int key = threadIdx.x; key < p.keys; key += kThreads) {
    float weight = expf(scores[key] - most);
    scores[key] = weight;
    sum += weight;
  }
  sum = over_block(sum, Sum());
  if (p.sinks != nullptr) {
    sum += expf(sink - most);
  }
  for (int key = threadIdx.x; key < p.keys; key += kThreads) {
    scores[key] /= sum;
  }
}

// (batch, head, token, feature) with any strides to row-major float.
template <typename T>
__global__ void to_float(
    const T* from,
    int64_t s0,
    int64_t s1,
    int64_t s2,
    int heads,
    int tokens,
    int features,
    int64_t size,
    float* to) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < size;
       i += step) {
    int64_t row = i / features;
    int64_t at = row / tokens / heads * s0 + row / tokens % heads * s1 +
                 row % tokens * s2;
    to[i] = to_compute(from[at + i % features]);
  }
}

// Rows of a block, in float, to their places in the output.
template <typename T>
__global__ void from_float(
    const float* from,
    RowBlock block,
    int tokens,
    int features,
    int64_t size,
    T* to) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < size;
       i += step) {
    int64_t row = i / features;
    int64_t out_row =
        row / block.rows * tokens + block.first + row % block.rows;
    to[out_row * features + i % features] = convert<T>(from[i]);
  }
}

struct FloatOperand {
  const float* data;
  int64_t strides[3];
};

// The operand itself when it is float already.
FloatOperand as_float(
    const void* data,
    const int64_t* strides,
    int batch,
    int heads,
    int tokens,
    int features,
    Dtype dtype,
    std::vector<Scratch>& kept,
    Encoder& e) {
  if (dtype == float32) {
    return {
        static_cast<const float*>(data), {strides[0], strides[1], strides[2]}};
  }
  int64_t size = int64_t(batch) * heads * tokens * features;
  kept.push_back(e.scratch(static_cast<size_t>(size) * sizeof(float)));
  auto* to = kept.back().get<float>();
  visit_real_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    e.launch(
        to_float<T>,
        grid_for(static_cast<size_t>(size), kThreads),
        kThreads,
        0,
        static_cast<const T*>(data),
        strides[0],
        strides[1],
        strides[2],
        heads,
        tokens,
        features,
        size,
        to);
  });
  int64_t head = int64_t(tokens) * features;
  return {to, {head * heads, head, features}};
}

struct FloatProblem {
  FloatOperand q, k, v;
};

void score_block(
    const AttentionProblem& p,
    const FloatProblem& f,
    RowBlock block,
    float* scores,
    float* out,
    Dtype dtype,
    Encoder& e) {
  GemmArgs product{
      .op = "scaled_dot_product_attention",
      .type = float32,
      .rows = block.rows,
      .cols = p.keys,
      .depth = p.features,
      .a =
          {f.q.data + block.first * f.q.strides[2],
           f.q.strides[2],
           1,
           {f.q.strides[0], f.q.strides[1] * p.group, f.q.strides[1]}},
      .b = {f.k.data, 1, f.k.strides[2], {f.k.strides[0], f.k.strides[1], 0}},
      .out = scores,
      .batch_shape = {p.batch, p.kv_heads, p.group}};
  gemm(product, e);
  int64_t rows = int64_t(p.batch) * p.kv_heads * p.group * block.rows;
  visit_real_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    e.launch(
        softmax_of_scores<T>,
        static_cast<unsigned>(rows),
        kThreads,
        0,
        p,
        block,
        scores);
  });
  int64_t plane = int64_t(block.rows) * p.keys;
  GemmArgs values{
      .op = "scaled_dot_product_attention",
      .type = float32,
      .rows = block.rows,
      .cols = p.value_features,
      .depth = p.keys,
      .a =
          {scores,
           p.keys,
           1,
           {plane * p.group * p.kv_heads, plane * p.group, plane}},
      .b = {f.v.data, f.v.strides[2], 1, {f.v.strides[0], f.v.strides[1], 0}},
      .out = out,
      .batch_shape = {p.batch, p.kv_heads, p.group}};
  gemm(values, e);
}

}  // namespace

void attention_scores(const AttentionProblem& p, Dtype dtype, Encoder& e) {
  std::vector<Scratch> kept;
  int heads = p.kv_heads * p.group;
  FloatProblem f{
      as_float(
          p.q,
          p.q_strides,
          p.batch,
          heads,
          p.tokens,
          p.features,
          dtype,
          kept,
          e),
      as_float(
          p.k,
          p.k_strides,
          p.batch,
          p.kv_heads,
          p.keys,
          p.features,
          dtype,
          kept,
          e),
      as_float(
          p.v,
          p.v_strides,
          p.batch,
          p.kv_heads,
          p.keys,
          p.value_features,
          dtype,
          kept,
          e)};
  size_t per_row = size_t(p.batch) * heads * p.keys;
  auto rows = static_cast<int>(std::clamp<size_t>(
      kMostScores / std::max<size_t>(per_row, 1), 1, p.tokens));
  Scratch scores = e.scratch(per_row * rows * sizeof(float));
  bool direct = dtype == float32 && rows == p.tokens;
  size_t out_size = size_t(p.batch) * heads * rows * p.value_features;
  Scratch staged = e.scratch(direct ? 0 : out_size * sizeof(float));
  for (int first = 0; first < p.tokens; first += rows) {
    RowBlock block{first, std::min(rows, p.tokens - first)};
    float* out = direct ? static_cast<float*>(p.out) : staged.get<float>();
    score_block(p, f, block, scores.get<float>(), out, dtype, e);
    if (direct) {
      continue;
    }
    int64_t size = int64_t(p.batch) * heads * block.rows * p.value_features;
    visit_real_float(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      e.launch(
          from_float<T>,
          grid_for(static_cast<size_t>(size), kThreads),
          kThreads,
          0,
          out,
          block,
          p.tokens,
          p.value_features,
          size,
          static_cast<T*>(p.out));
    });
  }
}

}  // namespace mlx::core::cuda
