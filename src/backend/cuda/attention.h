// Attention: what all its kernels are told, and who takes which problem.
#pragma once

#include "backend/cuda/encoder.h"
#include "fast/attention.h"

namespace mlx::core::cuda {

enum class MaskKind { none, boolean, additive };

/// Addresses are the device's, strides in elements: batch, head, token. `out`
/// is row-major. Features are neighbours in memory.
struct AttentionProblem {
  const void* q;
  const void* k;
  const void* v;
  const void* mask;   // batch, head, token, key; broadcast axes have stride 0
  const void* sinks;  // one a head, or null
  void* out;
  int64_t q_strides[3];
  int64_t k_strides[3];
  int64_t v_strides[3];
  int64_t mask_strides[4];
  int64_t sink_stride;
  int batch;
  int kv_heads;
  int group;  // query heads a key head
  int tokens;
  int keys;
  int features;
  int value_features;
  float scale;
  bool causal;
  bool aligned;  // rows of q, k and v can be read 16 bytes at a time
  MaskKind mask_kind;
};

void attention(
    const fast::ScaledDotProductAttention& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);

/// Any number of rows; made for few. Up to 256 features.
constexpr int kFewFeatures = 256;
void attention_few_float32(const AttentionProblem& p, Encoder& e);
void attention_few_float16(const AttentionProblem& p, Encoder& e);
void attention_few_bfloat16(const AttentionProblem& p, Encoder& e);

/// An entry of a list, attention or attention_join, as a launch of its own.
void attention_short(const BatchEntry& entry, Encoder& e);

/// By way of the matrix of scores, a block of it at a time.
void attention_scores(const AttentionProblem& p, Dtype dtype, Encoder& e);

/// By cuDNN; false where it does not take the problem.
bool attention_cudnn(const AttentionProblem& p, Dtype dtype, Encoder& e);

}  // namespace mlx::core::cuda
