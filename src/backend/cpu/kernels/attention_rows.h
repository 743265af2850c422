// What both ways of attention do with one row of scores: masks, the running
// softmax, and the result.
#pragma once

#include "backend/cpu/kernels/attention.h"
#include "backend/cpu/simd/math_exp.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_convert.h"

// One copy in a compile unit: in each of a dozen callers it would take the
// compiler half a minute.
#define MLX_ONCE [[maybe_unused, gnu::noinline]] static

namespace mlx::core::cpu::MLX_ISA {

using F = Vec<float>;

constexpr float kLowest = -3.402823466e+38f;
constexpr float kInfinity = __builtin_inff();

static inline size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

template <typename T>
static inline void load_row(const T* from, float* to, size_t n) {
  size_t i = 0;
  for (; i + F::size <= n; i += F::size) {
    load_as<float>(from + i).store(to + i);
  }
  for (; i < n; ++i) {
    to[i] = static_cast<float>(from[i]);
  }
}

/// Queries as floats, scaled, a row every `stride`.
template <typename T>
static inline void load_queries(
    const AttentionBlock& b, float* queries, size_t stride) {
  for (size_t r = 0; r < b.rows; ++r) {
    float* to = queries + r * stride;
    load_row(static_cast<const T*>(b.query_rows[r]), to, b.features);
    for (size_t i = 0; i < b.features; ++i) {
      to[i] *= b.scale;
    }
  }
}

template <typename M>
static inline void add_mask(
    const M* mask, int64_t stride, float* scores, size_t n) {
  for (size_t j = 0; j < n; ++j) {
    M m = mask[static_cast<int64_t>(j) * stride];
    if constexpr (sizeof(M) == 1) {
      scores[j] = m ? scores[j] : kLowest;
    } else {
      scores[j] += static_cast<float>(m);
    }
  }
}

// Masks of row r for keys [first, first + n); what lies behind goes to -inf.
MLX_ONCE void mask_row(
    const AttentionBlock& b, size_t r, size_t first, size_t n, float* scores) {
  size_t limit = b.limits[r];
  for (size_t j = limit > first ? limit - first : 0; j < n; ++j) {
    scores[j] = kLowest;
  }
  for (size_t j = n; j < kAttentionKeys; ++j) {
    scores[j] = -kInfinity;
  }
  if (!b.has_mask) {
    return;
  }
  int64_t skip = static_cast<int64_t>(first) * b.mask_stride;
  switch (b.mask_dtype.val()) {
    case Dtype::Val::bool_:
      return add_mask(
          static_cast<const uint8_t*>(b.mask_rows[r]) + skip,
          b.mask_stride,
          scores,
          n);
    case Dtype::Val::float16:
      return add_mask(
          static_cast<const float16_t*>(b.mask_rows[r]) + skip,
          b.mask_stride,
          scores,
          n);
    case Dtype::Val::bfloat16:
      return add_mask(
          static_cast<const bfloat16_t*>(b.mask_rows[r]) + skip,
          b.mask_stride,
          scores,
          n);
    case Dtype::Val::float64:
      return add_mask(
          static_cast<const double*>(b.mask_rows[r]) + skip,
          b.mask_stride,
          scores,
          n);
    default:
      return add_mask(
          static_cast<const float*>(b.mask_rows[r]) + skip,
          b.mask_stride,
          scores,
          n);
  }
}

/// A row's largest score so far, and the sum of exp(score - top).
struct Running {
  float top;
  float total;
};

// Scores to weights; rescales the row's sums when the maximum grows.
MLX_ONCE void soften_row(
    float* scores, float* sums, size_t width, Running& run) {
  F m(scores[0]);
  for (size_t j = 0; j < kAttentionKeys; j += F::size) {
    m = maximum(m, F::load(scores + j));
  }
  float top = max(m);
  top = top > run.top || top != top ? top : run.top;
  if (top == -kInfinity) {
    // Nothing seen yet: -inf minus -inf would be NaN.
    for (size_t j = 0; j < kAttentionKeys; ++j) {
      scores[j] = 0.0f;
    }
    return;
  }
  F shift(top);
  F added(0.0f);
  for (size_t j = 0; j < kAttentionKeys; j += F::size) {
    F w = math::exp(F::load(scores + j) - shift);
    w.store(scores + j);
    added += w;
  }
  if (top != run.top) {
    float shrink = math::exp(F(run.top - top))[0];
    run.total *= shrink;
    F by(shrink);
    for (size_t i = 0; i < width; i += F::size) {
      (F::load(sums + i) * by).store(sums + i);
    }
    run.top = top;
  }
  run.total += sum(added);
}

/// Where a row starts: its sink is a key without value, in the first piece.
static inline Running first_running(const AttentionBlock& b, size_t r) {
  return b.has_sinks ? Running{b.sinks[r], 1.0f} : Running{-kInfinity, 0.0f};
}

/// Keys that some row sees. A row that sees nothing is averaged over all keys.
static inline size_t seen_keys(const AttentionBlock& b) {
  size_t seen = 0;
  for (size_t r = 0; r < b.rows; ++r) {
    size_t reach = b.limits[r] == 0 ? b.keys : b.limits[r];
    seen = reach > seen ? reach : seen;
  }
  return seen;
}

template <typename T>
static inline void store_row(const float* sums, float total, T* to, size_t n) {
  float by = 1.0f / total;
  for (size_t i = 0; i < n; ++i) {
    to[i] = T(sums[i] * by);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
