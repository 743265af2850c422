// Attention of few rows, the decode path: keys and values are read where they
// lie, once for up to four rows, so that memory is the limit. Scores are dot
// products along a key, four keys at a time; values are added row by row.
#include "backend/cpu/kernels/attention_rows.h"
#include "backend/cpu/simd/vec_sums.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

constexpr size_t kTileKeys = 4;
constexpr size_t kTileWidth = 2 * F::size;

struct Few {
  float* queries;  // rows x depth, scaled; zeros behind the features
  float* scores;   // rows x 64
  float* sums;     // rows x width
  size_t depth;
  size_t width;
};

Few divide(const AttentionBlock& b) {
  Few s;
  s.depth = padded_to_16(b.features);
  s.width = attention_partial_floats(b.value_features);
  s.queries = b.scratch;
  s.scores = s.queries + kAttentionRows * s.depth;
  s.sums = b.partial != nullptr ? b.partial
                                : s.scores + kAttentionRows * kAttentionKeys;
  return s;
}

/// Up to F::size numbers, then zeros.
template <typename T>
MLX_INLINE F load_tail(const T* from, size_t n) {
  T padded[F::size] = {};
  __builtin_memcpy(padded, from, n * sizeof(T));
  return load_as<float>(padded);
}

/// Scores of R rows and four keys.
template <typename T, int R>
MLX_INLINE void score_tile(
    const T* const (&keys)[kTileKeys],
    const float* queries,
    size_t query_stride,
    size_t features,
    float* scores) {
  F acc[R][kTileKeys];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (size_t k = 0; k < kTileKeys; ++k) {
      acc[r][k] = F(0.0f);
    }
  }
  auto add = [&](size_t d, auto load) {
    F q[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      q[r] = F::load(queries + r * query_stride + d);
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < kTileKeys; ++k) {
      F key = load(keys[k] + d);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        acc[r][k] = fma(q[r], key, acc[r][k]);
      }
    }
  };
  size_t d = 0;
  for (; d + F::size <= features; d += F::size) {
    add(d, [](const T* p) { return load_as<float>(p); });
  }
  if (d < features) {
    add(d, [&](const T* p) { return load_tail(p, features - d); });
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    __m128 sums = lane_sums(
        fold_lanes(acc[r][0].v),
        fold_lanes(acc[r][1].v),
        fold_lanes(acc[r][2].v),
        fold_lanes(acc[r][3].v));
    __builtin_memcpy(scores + r * kAttentionKeys, &sums, sizeof(sums));
  }
}

/// Adds weight * value to kTileWidth sums of R rows.
template <typename T, int R>
MLX_INLINE void add_values(
    const T* values,
    int64_t value_stride,
    const float* weights,
    size_t n,
    float* sums,
    size_t width) {
  F acc[R][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    acc[r][0] = F::load(sums + r * width);
    acc[r][1] = F::load(sums + r * width + F::size);
  }
  for (size_t j = 0; j < n; ++j) {
    F v0 = load_as<float>(values);
    F v1 = load_as<float>(values + F::size);
    values += value_stride;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      F w(weights[r * kAttentionKeys + j]);
      acc[r][0] = fma(w, v0, acc[r][0]);
      acc[r][1] = fma(w, v1, acc[r][1]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    acc[r][0].store(sums + r * width);
    acc[r][1].store(sums + r * width + F::size);
  }
}

/// R rows and the keys [first, first + n), n <= 64.
template <typename T, int R>
void run_rows(
    const AttentionBlock& b,
    const Few& s,
    size_t row,
    size_t first,
    size_t n,
    Running* running) {
  float* scores = s.scores + row * kAttentionKeys;
  float* sums = s.sums + row * s.width;
  const T* key_base = static_cast<const T*>(b.key_base);
  for (size_t j = 0; j < n; j += kTileKeys) {
    const T* keys[kTileKeys];
    for (size_t k = 0; k < kTileKeys; ++k) {
      // Keys past the end repeat the last one; mask_row hides them.
      size_t at = first + least(j + k, n - 1);
      keys[k] = key_base + static_cast<int64_t>(at) * b.key_stride;
    }
    score_tile<T, R>(
        keys, s.queries + row * s.depth, s.depth, b.features, scores + j);
  }
  for (int r = 0; r < R; ++r) {
    mask_row(b, row + r, first, n, scores + r * kAttentionKeys);
    soften_row(
        scores + r * kAttentionKeys,
        sums + r * s.width,
        padded_to_16(b.value_features),
        running[row + r]);
  }
  const T* values = static_cast<const T*>(b.value_base) +
                    static_cast<int64_t>(first) * b.value_stride;
  size_t i = 0;
  for (; i + kTileWidth <= b.value_features; i += kTileWidth) {
    add_values<T, R>(values + i, b.value_stride, scores, n, sums + i, s.width);
  }
  if (i < b.value_features) {
    T tail[kAttentionKeys * kTileWidth] = {};
    for (size_t j = 0; j < n; ++j) {
      __builtin_memcpy(
          tail + j * kTileWidth,
          values + static_cast<int64_t>(j) * b.value_stride + i,
          (b.value_features - i) * sizeof(T));
    }
    add_values<T, R>(tail, kTileWidth, scores, n, sums + i, s.width);
  }
}

template <typename T>
void run_piece(
    const AttentionBlock& b,
    const Few& s,
    size_t first,
    size_t n,
    Running* running) {
  size_t row = 0;
  for (; row + 4 <= b.rows; row += 4) {
    run_rows<T, 4>(b, s, row, first, n, running);
  }
  switch (b.rows - row) {
    case 1:
      return run_rows<T, 1>(b, s, row, first, n, running);
    case 2:
      return run_rows<T, 2>(b, s, row, first, n, running);
    case 3:
      return run_rows<T, 3>(b, s, row, first, n, running);
    default:
      return;
  }
}

template <typename T>
void run_few(const AttentionBlock& b) {
  Few s = divide(b);
  Running running[kAttentionRows];
  for (size_t r = 0; r < b.rows; ++r) {
    running[r] =
        b.first_key == 0 ? first_running(b, r) : Running{-kInfinity, 0.0f};
    for (size_t i = b.features; i < s.depth; ++i) {
      s.queries[r * s.depth + i] = 0.0f;
    }
    for (size_t i = 0; i < s.width; ++i) {
      s.sums[r * s.width + i] = 0.0f;
    }
  }
  load_queries<T>(b, s.queries, s.depth);
  size_t last = least(b.last_key, seen_keys(b));
  for (size_t first = b.first_key; first < last; first += kAttentionKeys) {
    run_piece<T>(b, s, first, least(kAttentionKeys, last - first), running);
  }
  for (size_t r = 0; r < b.rows; ++r) {
    float* sums = s.sums + r * s.width;
    if (b.partial != nullptr) {
      sums[s.width - 2] = running[r].top;
      sums[s.width - 1] = running[r].total;
    } else {
      store_row(
          sums,
          running[r].total,
          static_cast<T*>(b.out_rows[r]),
          b.value_features);
    }
  }
}

template <typename T>
void join_row(
    const float* partial,
    size_t splits,
    size_t stride,
    size_t value_features,
    T* out) {
  const size_t width = attention_partial_floats(value_features);
  float top = -kInfinity;
  for (size_t i = 0; i < splits; ++i) {
    float other = partial[i * stride + width - 2];
    top = other > top || other != other ? other : top;
  }
  float sums[F::size];
  float total = 0;
  for (size_t i = 0; i < splits; ++i) {
    const float* part = partial + i * stride;
    total += part[width - 1] * math::exp(F(part[width - 2] - top))[0];
  }
  for (size_t at = 0; at < value_features; at += F::size) {
    F sum(0.0f);
    for (size_t i = 0; i < splits; ++i) {
      const float* part = partial + i * stride;
      sum = fma(math::exp(F(part[width - 2] - top)), F::load(part + at), sum);
    }
    sum.store(sums);
    store_row(sums, total, out + at, least(F::size, value_features - at));
  }
}

}  // namespace

void attention_few(const AttentionBlock& block) {
  switch (block.dtype.val()) {
    case Dtype::Val::float16:
      return run_few<float16_t>(block);
    case Dtype::Val::bfloat16:
      return run_few<bfloat16_t>(block);
    default:
      return run_few<float>(block);
  }
}

void attention_join(
    const float* partial,
    size_t splits,
    size_t stride,
    size_t value_features,
    Dtype type,
    void* out) {
  switch (type.val()) {
    case Dtype::Val::float16:
      return join_row(
          partial,
          splits,
          stride,
          value_features,
          static_cast<float16_t*>(out));
    case Dtype::Val::bfloat16:
      return join_row(
          partial,
          splits,
          stride,
          value_features,
          static_cast<bfloat16_t*>(out));
    default:
      return join_row(
          partial, splits, stride, value_features, static_cast<float*>(out));
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
