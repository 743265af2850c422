// Quantized weights straight into the packed panels of B, so that the product
// with many rows costs one unpacking per block of rows and no copy in memory.
#include "backend/cpu/kernels/gemm_micro.h"
#include "backend/cpu/kernels/quantized_decode.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

constexpr int kWidth = kTileCols<float>;
/// Depth unpacked at a time: at most 8 groups.
constexpr int64_t kChunk = 256;

/// Eight lines of a panel: where their codes, scales and biases begin.
struct EightLines {
  const uint8_t* codes[8];
  Float8 scales[8];  // [group], a lane for each line
  Float8 biases[8];
};

void load_lines(
    const QuantizedMatrix& w,
    int64_t line,
    int64_t last,
    int64_t col,
    int64_t count,
    EightLines& lines) {
  for (int i = 0; i < 8; ++i) {
    int64_t at = (line + i < last ? line + i : last) * w.cols + col;
    lines.codes[i] = static_cast<const uint8_t*>(w.codes) + at * w.bits / 8;
    alignas(32) float numbers[8];
    int64_t group = at / w.group_size;
    int64_t groups = count / w.group_size;
    load_floats(w.scales, w.type, group, groups, 8, numbers);
    __builtin_memcpy(&lines.scales[i], numbers, sizeof(numbers));
    load_floats(w.biases, w.type, group, groups, 8, numbers);
    __builtin_memcpy(&lines.biases[i], numbers, sizeof(numbers));
  }
  transpose_registers<8>(lines.scales);
  transpose_registers<8>(lines.biases);
}

/// One tile of eight lines. After the transpose a register holds one lane of
/// all lines, so every code lands beside its neighbours in the panel.
template <int Bits>
MLX_INLINE void unpack_tile(
    Word8 (&words)[8],
    const EightLines& lines,
    int64_t offset,
    int group_shift,
    int64_t present,
    float* to) {
  using C = Codes<Bits>;
  transpose_registers<8>(words);
  int64_t group = 0;
  Float8 scaled[2][C::per_lane];
  Float8 bias = {};
#pragma GCC unroll 8
  for (int lane = 0; lane < 8; ++lane) {
    if (lane * C::per_lane >= present) {
      return;
    }
    int64_t now = (offset + lane * C::per_lane) >> group_shift;
    if (lane == 0 || now != group) {
      group = now;
      bias = lines.biases[group];
#pragma GCC unroll 16
      for (int j = 0; j < C::per_lane; ++j) {
        scaled[0][j] = lines.scales[group] * C::unscale(0, j);
        scaled[1][j] = lines.scales[group] * C::unscale(1, j);
      }
    }
#pragma GCC unroll 16
    for (int j = 0; j < C::per_lane; ++j) {
      Float8 value;
      lane_values<Bits>(words[lane], lane, j, value);
      value = value * scaled[Bits == 5 ? lane % 2 : 0][j] + bias;
      __builtin_memcpy(
          to + (lane * C::per_lane + j) * kWidth, &value, sizeof(value));
    }
  }
}

template <int Bits>
void unpack_chunk(
    const EightLines& lines, int group_shift, int64_t count, float* to) {
  using C = Codes<Bits>;
  for (int64_t i = 0; i < count; i += C::count) {
    int64_t present = count - i < C::count ? count - i : C::count;
    Word8 words[8];
    for (int line = 0; line < 8; ++line) {
      const uint8_t* from = lines.codes[line] + i * Bits / 8;
      if (present == C::count) {
        load_tile<Bits>(from, words[line]);
      } else {
        load_tile_part<Bits>(from, int(present) * Bits / 8, words[line]);
      }
    }
    unpack_tile<Bits>(words, lines, i, group_shift, present, to + i * kWidth);
  }
}

}  // namespace

void qmm_pack_rows(
    const QuantizedMatrix& w,
    int64_t line,
    int64_t lines,
    int64_t start,
    int64_t depth,
    float* panels) {
  int64_t last = line + lines - 1;
  int group_shift = __builtin_ctz(unsigned(w.group_size));
  for (int64_t i = 0; i < lines; i += 8) {
    float* panel = panels + i / kWidth * kWidth * depth + i % kWidth;
    for (int64_t k = 0; k < depth; k += kChunk) {
      int64_t count = depth - k < kChunk ? depth - k : kChunk;
      EightLines eight;
      load_lines(w, line + i, last, start + k, count, eight);
      with_bits(w.bits, [&]<int Bits>() {
        unpack_chunk<Bits>(eight, group_shift, count, panel + k * kWidth);
      });
    }
  }
}

void qmm_pack_cols(
    const QuantizedMatrix& w,
    int64_t line,
    int64_t lines,
    int64_t start,
    int64_t depth,
    float* panels) {
  alignas(64) float numbers[kQuantizedTile + 8] = {};
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t at = line; at < line + lines;) {
      int64_t col = at / kQuantizedTile * kQuantizedTile;
      int64_t end =
          col + kQuantizedTile < w.cols ? col + kQuantizedTile : w.cols;
      decode_numbers(w, start + k, col, end - col, numbers);
      end = end < line + lines ? end : line + lines;
      for (; at < end; at += kWidth) {
        __builtin_memcpy(
            panels + (at - line) * depth + k * kWidth,
            numbers + (at - col),
            kWidth * sizeof(float));
      }
      at = end;
    }
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
