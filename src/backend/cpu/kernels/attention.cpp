// One block of rows: keys and values come in pieces of 64, converted to
// float32; scores and sums are products of small packed matrices (4 rows by
// two vectors in registers). Compute-bound for many rows, bound by reading
// keys and values for few.
#include "backend/cpu/kernels/attention.h"

#include "backend/cpu/simd/math_exp.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

using F = Vec<float>;

constexpr float kLowest = -3.402823466e+38f;
constexpr float kInfinity = __builtin_inff();

inline size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

struct Scratch {
  float* queries;  // rows x features, scaled
  float* keys;     // features x 64
  float* values;   // 64 x width
  float* scores;   // rows x 64
  float* sums;     // rows x width
  size_t width;    // value features, padded
};

Scratch divide(const AttentionBlock& b) {
  Scratch s;
  s.width = padded_to_16(b.value_features);
  s.queries = b.scratch;
  s.keys = s.queries + kAttentionRows * b.features;
  s.values = s.keys + b.features * kAttentionKeys;
  s.scores = s.values + kAttentionKeys * s.width;
  s.sums = s.scores + kAttentionRows * kAttentionKeys;
  return s;
}

// c[rows x cols] (+)= a[rows x depth] b[depth x cols], cols a multiple of two
// vectors.
template <int R>
inline void multiply_rows(
    const float* a,
    size_t a_stride,
    const float* b,
    size_t b_stride,
    float* c,
    size_t c_stride,
    size_t depth,
    size_t cols,
    bool add) {
  for (size_t j = 0; j < cols; j += 2 * F::size) {
    F acc[R][2];
    for (int r = 0; r < R; ++r) {
      acc[r][0] = add ? F::load(c + r * c_stride + j) : F(0.0f);
      acc[r][1] = add ? F::load(c + r * c_stride + j + F::size) : F(0.0f);
    }
    for (size_t d = 0; d < depth; ++d) {
      F b0 = F::load(b + d * b_stride + j);
      F b1 = F::load(b + d * b_stride + j + F::size);
      for (int r = 0; r < R; ++r) {
        F x(a[r * a_stride + d]);
        acc[r][0] = fma(x, b0, acc[r][0]);
        acc[r][1] = fma(x, b1, acc[r][1]);
      }
    }
    for (int r = 0; r < R; ++r) {
      acc[r][0].store(c + r * c_stride + j);
      acc[r][1].store(c + r * c_stride + j + F::size);
    }
  }
}

inline void multiply(
    const float* a,
    size_t a_stride,
    const float* b,
    size_t b_stride,
    float* c,
    size_t c_stride,
    size_t rows,
    size_t depth,
    size_t cols,
    bool add) {
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    multiply_rows<4>(
        a + r * a_stride,
        a_stride,
        b,
        b_stride,
        c + r * c_stride,
        c_stride,
        depth,
        cols,
        add);
  }
  for (; r < rows; ++r) {
    multiply_rows<1>(
        a + r * a_stride,
        a_stride,
        b,
        b_stride,
        c + r * c_stride,
        c_stride,
        depth,
        cols,
        add);
  }
}

template <typename T>
void load_row(const T* from, float* to, size_t n) {
  size_t i = 0;
  for (; i + F::size <= n; i += F::size) {
    load_as<float>(from + i).store(to + i);
  }
  for (; i < n; ++i) {
    to[i] = static_cast<float>(from[i]);
  }
}

template <typename T>
void load_queries(const AttentionBlock& b, const Scratch& s) {
  for (size_t r = 0; r < b.rows; ++r) {
    float* to = s.queries + r * b.features;
    load_row(static_cast<const T*>(b.query_rows[r]), to, b.features);
    for (size_t i = 0; i < b.features; ++i) {
      to[i] *= b.scale;
    }
  }
}

// Keys [first, first + n) transposed, values as rows; the rest zero.
template <typename T>
void load_piece(
    const AttentionBlock& b, const Scratch& s, size_t first, size_t n) {
  const T* keys = static_cast<const T*>(b.key_base);
  const T* values = static_cast<const T*>(b.value_base);
  float row[kAttentionKeys];
  for (size_t j = 0; j < kAttentionKeys; ++j) {
    float* value = s.values + j * s.width;
    size_t filled = 0;
    if (j < n) {
      int64_t at = static_cast<int64_t>(first + j);
      const T* key = keys + at * b.key_stride;
      for (size_t d0 = 0; d0 < b.features; d0 += kAttentionKeys) {
        size_t count = least(kAttentionKeys, b.features - d0);
        load_row(key + d0, row, count);
        for (size_t d = 0; d < count; ++d) {
          s.keys[(d0 + d) * kAttentionKeys + j] = row[d];
        }
      }
      load_row(values + at * b.value_stride, value, b.value_features);
      filled = b.value_features;
    } else {
      for (size_t d = 0; d < b.features; ++d) {
        s.keys[d * kAttentionKeys + j] = 0.0f;
      }
    }
    for (size_t i = filled; i < s.width; ++i) {
      value[i] = 0.0f;
    }
  }
}

template <typename M>
inline void add_mask(const M* mask, int64_t stride, float* scores, size_t n) {
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
void mask_row(
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

struct Running {
  float top;
  float total;
};

// Scores to weights; rescales the row's sums when the maximum grows.
void soften_row(float* scores, float* sums, size_t width, Running& run) {
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

template <typename T>
void store_row(const float* sums, float total, T* to, size_t n) {
  float by = 1.0f / total;
  for (size_t i = 0; i < n; ++i) {
    to[i] = T(sums[i] * by);
  }
}

template <typename T>
void run_block(const AttentionBlock& b) {
  Scratch s = divide(b);
  Running running[kAttentionRows];
  size_t seen = 0;
  for (size_t r = 0; r < b.rows; ++r) {
    running[r] =
        b.has_sinks ? Running{b.sinks[r], 1.0f} : Running{-kInfinity, 0.0f};
    // A row that sees nothing is averaged over all keys.
    size_t reach = b.limits[r] == 0 ? b.keys : b.limits[r];
    seen = reach > seen ? reach : seen;
  }
  for (size_t i = 0; i < b.rows * s.width; ++i) {
    s.sums[i] = 0.0f;
  }
  load_queries<T>(b, s);
  for (size_t first = 0; first < seen; first += kAttentionKeys) {
    size_t n = least(kAttentionKeys, seen - first);
    load_piece<T>(b, s, first, n);
    multiply(
        s.queries,
        b.features,
        s.keys,
        kAttentionKeys,
        s.scores,
        kAttentionKeys,
        b.rows,
        b.features,
        kAttentionKeys,
        false);
    for (size_t r = 0; r < b.rows; ++r) {
      float* scores = s.scores + r * kAttentionKeys;
      mask_row(b, r, first, n, scores);
      soften_row(scores, s.sums + r * s.width, s.width, running[r]);
    }
    multiply(
        s.scores,
        kAttentionKeys,
        s.values,
        s.width,
        s.sums,
        s.width,
        b.rows,
        kAttentionKeys,
        s.width,
        true);
  }
  for (size_t r = 0; r < b.rows; ++r) {
    store_row(
        s.sums + r * s.width,
        running[r].total,
        static_cast<T*>(b.out_rows[r]),
        b.value_features);
  }
}

}  // namespace

void attention_block(const AttentionBlock& block) {
  switch (block.dtype.val()) {
    case Dtype::Val::float16:
      return run_block<float16_t>(block);
    case Dtype::Val::bfloat16:
      return run_block<bfloat16_t>(block);
    default:
      return run_block<float>(block);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
