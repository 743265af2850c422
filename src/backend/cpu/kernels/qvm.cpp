// A few vectors times a quantized matrix whose groups run along the columns:
// rows of codes are read once, four at a time, and added up in the order in
// which codes lie in their words; only the finished sums are put in order.
#include "backend/cpu/kernels/quantized.h"
#include "backend/cpu/kernels/quantized_codes.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

constexpr int64_t kChunk = 1024;
constexpr int kSteps = 4;
constexpr int kPassRows = 4;
constexpr int64_t kMaxGroups = kChunk / 32;

/// Steps rows of codes with their scales; a chunk of columns.
template <int Steps>
struct CodeRows {
  const uint8_t* codes[Steps];
  float scales[Steps][kMaxGroups + 8];
  float biases[Steps][kMaxGroups + 8];
};

template <int Steps>
void load_rows(
    const QuantizedMatrix& w,
    int64_t k,
    int64_t col,
    int64_t count,
    CodeRows<Steps>& rows) {
  int64_t groups = count / w.group_size;
  int64_t padded = (groups + 7) / 8 * 8;
  for (int s = 0; s < Steps; ++s) {
    int64_t at = (k + s) * w.cols + col;
    int64_t group = at / w.group_size;
    rows.codes[s] = static_cast<const uint8_t*>(w.codes) + at * w.bits / 8;
    load_floats(w.scales, w.type, group, groups, padded, rows.scales[s]);
    load_floats(w.biases, w.type, group, groups, padded, rows.biases[s]);
  }
}

/// Sums of one chunk, for each row of x.
struct ChunkSums {
  float codes[kPassRows][kChunk];  // tile, code in lane, lane
  float biases[kPassRows][kMaxGroups];
};

template <int Bits, int Groups, int Rows, int Steps>
MLX_INLINE void add_tile(
    const CodeRows<Steps>& rows,
    const Word8 (&lanes)[Steps],
    int64_t group,
    const float* x,
    int64_t x_stride,
    int64_t offset,
    ChunkSums& sums) {
  using C = Codes<Bits>;
  Float8 factors[Rows][Steps];
#pragma GCC unroll 4
  for (int s = 0; s < Steps; ++s) {
    Float8 scale;
    spread_groups<Groups>(rows.scales[s] + group, scale);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      factors[r][s] = scale * x[r * x_stride + s];
    }
  }
#pragma GCC unroll 16
  for (int j = 0; j < C::per_lane; ++j) {
    Float8 value[Steps];
#pragma GCC unroll 4
    for (int s = 0; s < Steps; ++s) {
      tile_values<Bits>(lanes[s], j, value[s]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      float* place = sums.codes[r] + offset + j * 8;
      Float8 sum;
      __builtin_memcpy(&sum, place, sizeof(sum));
#pragma GCC unroll 4
      for (int s = 0; s < Steps; ++s) {
        sum += value[s] * factors[r][s];
      }
      __builtin_memcpy(place, &sum, sizeof(sum));
    }
  }
}

template <int Bits, int Groups, int Rows, int Steps>
void add_rows(
    const QuantizedMatrix& w,
    int64_t k,
    int64_t col,
    int64_t count,
    const float* x,
    int64_t x_stride,
    ChunkSums& sums) {
  using C = Codes<Bits>;
  CodeRows<Steps> rows;
  load_rows<Steps>(w, k, col, count, rows);
  for (int r = 0; r < Rows; ++r) {
    for (int64_t g = 0; g < count / w.group_size; ++g) {
      float sum = sums.biases[r][g];
      for (int s = 0; s < Steps; ++s) {
        sum += rows.biases[s][g] * x[r * x_stride + s];
      }
      sums.biases[r][g] = sum;
    }
  }
  const int64_t row_bytes = w.cols * Bits / 8;
  for (int64_t i = 0; i < count; i += C::count) {
    int64_t present = count - i < C::count ? count - i : C::count;
    Word8 lanes[Steps];
#pragma GCC unroll 4
    for (int s = 0; s < Steps; ++s) {
      const uint8_t* from = rows.codes[s] + i * Bits / 8;
      __builtin_prefetch(from + Steps * row_bytes);
      if (present == C::count) {
        load_tile<Bits>(from, lanes[s]);
      } else {
        load_tile_part<Bits>(from, int(present) * Bits / 8, lanes[s]);
      }
    }
    add_tile<Bits, Groups, Rows, Steps>(
        rows, lanes, i / w.group_size, x, x_stride, i, sums);
  }
}

/// Puts sums in the order of the columns and adds those of the biases.
template <int Bits>
void finish_chunk(
    const ChunkSums& sums,
    int64_t rows,
    int64_t count,
    int group_size,
    float* out,
    int64_t out_stride) {
  using C = Codes<Bits>;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t within = i % C::count;
      int lane = int(within / C::per_lane);
      int j = int(within % C::per_lane);
      float sum = sums.codes[r][i - within + j * 8 + lane];
      out[r * out_stride + i] =
          sum * C::unscale(lane, j) + sums.biases[r][i / group_size];
    }
  }
}

template <int Bits, int Groups, int Rows>
void multiply_chunk(
    const QuantizedMatrix& w,
    int64_t col,
    int64_t count,
    const float* x,
    ChunkSums& sums) {
  int64_t depth = w.rows;
  int64_t k = 0;
  for (; k + kSteps <= depth; k += kSteps) {
    add_rows<Bits, Groups, Rows, kSteps>(w, k, col, count, x + k, depth, sums);
  }
  for (; k < depth; ++k) {
    add_rows<Bits, Groups, Rows, 1>(w, k, col, count, x + k, depth, sums);
  }
}

template <int Bits, int Groups>
void multiply_rows(
    const QuantizedMatrix& w,
    int64_t rows,
    int64_t col,
    int64_t count,
    const float* x,
    ChunkSums& sums) {
  switch (rows) {
    case 1:
      return multiply_chunk<Bits, Groups, 1>(w, col, count, x, sums);
    case 2:
      return multiply_chunk<Bits, Groups, 2>(w, col, count, x, sums);
    case 3:
      return multiply_chunk<Bits, Groups, 3>(w, col, count, x, sums);
    default:
      return multiply_chunk<Bits, Groups, 4>(w, col, count, x, sums);
  }
}

}  // namespace

void qvm_cols(
    const QuantizedMatrix& w,
    const float* x,
    int64_t rows,
    int64_t first,
    int64_t cols,
    float* out,
    int64_t out_stride) {
  ChunkSums sums;
  for (int64_t at = 0; at < cols; at += kChunk) {
    int64_t count = cols - at < kChunk ? cols - at : kChunk;
    for (int64_t r = 0; r < rows;) {
      int64_t part = r == 0 && rows > kPassRows ? (rows + 1) / 2 : rows - r;
      __builtin_memset(&sums, 0, sizeof(sums));
      with_bits(w.bits, [&]<int Bits>() {
        with_groups<Bits>(w.group_size, [&]<int Groups>() {
          multiply_rows<Bits, Groups>(
              w, part, first + at, count, x + r * w.rows, sums);
        });
        finish_chunk<Bits>(
            sums,
            part,
            count,
            w.group_size,
            out + r * out_stride + at,
            out_stride);
      });
      r += part;
    }
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
