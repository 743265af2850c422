// One block of rows: keys and values come in pieces of 64, converted to
// float32; scores and sums are products of small packed matrices (4 rows by
// two vectors in registers). Compute-bound for many rows, bound by reading
// keys and values for few.
#include "backend/cpu/kernels/attention_rows.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

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

template <typename T>
void run_block(const AttentionBlock& b) {
  Scratch s = divide(b);
  Running running[kAttentionRows];
  for (size_t r = 0; r < b.rows; ++r) {
    running[r] = first_running(b, r);
  }
  size_t seen = seen_keys(b);
  for (size_t i = 0; i < b.rows * s.width; ++i) {
    s.sums[i] = 0.0f;
  }
  load_queries<T>(b, s.queries, b.features);
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
