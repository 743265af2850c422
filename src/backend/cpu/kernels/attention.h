// Attention of a block of query rows over all keys, with a running softmax
// (Milakov and Gimelshein 2018; Dao et al. 2022, FlashAttention).
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"

namespace mlx::core::cpu {

inline constexpr size_t kAttentionRows = 64;
inline constexpr size_t kAttentionKeys = 64;
/// Up to here attention_few is the faster one.
inline constexpr size_t kFewAttentionRows = 16;

/// Query rows that share keys and values. Strides in elements; the features
/// of a row lie next to each other.
struct AttentionBlock {
  size_t rows;  // at most kAttentionRows
  size_t keys;
  size_t features;
  size_t value_features;
  float scale;
  Dtype dtype = float32;

  const void* query_rows[kAttentionRows];
  void* out_rows[kAttentionRows];
  const void* key_base;
  int64_t key_stride;
  const void* value_base;
  int64_t value_stride;

  /// Row r sees keys below limits[r]; all are hidden when it is 0.
  size_t limits[kAttentionRows];

  /// Null, or where each row's mask begins.
  const void* mask_rows[kAttentionRows];
  int64_t mask_stride;
  bool has_mask;
  Dtype mask_dtype = bool_;

  bool has_sinks;
  float sinks[kAttentionRows];

  /// attention_scratch_floats(...) floats.
  float* scratch;

  /// attention_few alone: only the keys [first_key, last_key) count, and what
  /// attention_join needs of them goes to `partial`, attention_partial_floats
  /// for each row, if that is not null. first_key is a multiple of
  /// kAttentionKeys.
  size_t first_key;
  size_t last_key;
  float* partial;
};

constexpr size_t padded_to_16(size_t n) {
  return (n + 15) / 16 * 16;
}

/// Of one row: the sums of values, the largest score, the sum of weights.
constexpr size_t attention_partial_floats(size_t value_features) {
  return padded_to_16(value_features) + 16;
}

/// Queries, transposed keys, values, scores and sums of one block.
constexpr size_t attention_scratch_floats(
    size_t features, size_t value_features) {
  return kAttentionRows * padded_to_16(features) + features * kAttentionKeys +
         kAttentionKeys * padded_to_16(value_features) +
         kAttentionRows * kAttentionKeys +
         kAttentionRows * padded_to_16(value_features);
}

}  // namespace mlx::core::cpu

/// For many rows: each piece of keys and values is converted and transposed
/// once. first_key, last_key and partial are not looked at.
MLX_ISA_KERNEL(void, attention_block, (const AttentionBlock& block))

/// For few rows: keys and values are read where they lie.
MLX_ISA_KERNEL(void, attention_few, (const AttentionBlock& block))

/// One row's result from the partial results of `splits` ranges of keys,
/// `stride` floats apart.
MLX_ISA_KERNEL(
    void,
    attention_join,
    (const float* partial,
     size_t splits,
     size_t stride,
     size_t value_features,
     mlx::core::Dtype type,
     void* out))
