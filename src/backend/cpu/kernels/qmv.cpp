// Quantized matrix times a few vectors, the decode path. Each code is read and
// unpacked once and used for up to four rows of x:
//
//   dot(x, w) = sum over groups of scale * dot(x, codes) + bias * sum(x)
//
// in float32. Unpacking costs a mask and a conversion for 8 codes, beside one
// multiply-add; x is put into the order of the codes beforehand.
// AVX2 (Zen 3): 4 bits, about 0.8 cycles for 8 codes, so memory is the limit.
#include "backend/cpu/kernels/quantized.h"
#include "backend/cpu/kernels/quantized_codes.h"
#include "backend/cpu/kernels/register_transpose.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

/// Most rows of x in one pass over a line.
constexpr int kPassRows = 4;

int64_t pass_rows(int64_t rows) {
  return rows > kPassRows ? (rows + 1) / 2 : rows;
}

/// A block of lines with scales and biases as floats, and the rows of x.
struct QmvBlock {
  const uint8_t* codes[4];
  const float* scales[4];
  const float* biases[4];
  const float* x;
  const float* sums;
  int64_t sums_stride;
  int64_t depth;
  int64_t groups;  // rounded up to 8, with zeros
  int64_t tiles_per_group;
};

/// The dot products of one tile, not yet scaled, added to part.
template <int Bits, int Lines, int Rows>
MLX_INLINE void add_tile(
    const Word8 (&lanes)[Lines], const float* x, Float8 (&part)[Lines][Rows]) {
  constexpr int n = Codes<Bits>::per_lane;
#pragma GCC unroll 16
  for (int j = 0; j < n; ++j) {
    Float8 value[Lines];
#pragma GCC unroll 4
    for (int i = 0; i < Lines; ++i) {
      tile_values<Bits>(lanes[i], j, value[i]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      Float8 xr;
      __builtin_memcpy(&xr, x + (r * n + j) * 8, sizeof(xr));
#pragma GCC unroll 4
      for (int i = 0; i < Lines; ++i) {
        part[i][r] += value[i] * xr;
      }
    }
  }
}

template <int Lines, int Rows>
MLX_INLINE void clear(Float8 (&sums)[Lines][Rows]) {
#pragma GCC unroll 4
  for (int i = 0; i < Lines; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      sums[i][r] = Float8{};
    }
  }
}

/// total += scale * part, lane by lane.
template <int Groups, int Lines, int Rows>
MLX_INLINE void add_scaled(
    const float* const (&scales)[4],
    int64_t group,
    const Float8 (&part)[Lines][Rows],
    Float8 (&total)[Lines][Rows]) {
#pragma GCC unroll 4
  for (int i = 0; i < Lines; ++i) {
    Float8 scale;
    spread_groups<Groups>(scales[i] + group, scale);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      total[i][r] += scale * part[i][r];
    }
  }
}

/// Adds bias * sum(x) over all groups; lanes are groups here.
template <int Lines, int Rows>
MLX_INLINE void add_biases(
    const QmvBlock& block, Float8 (&total)[Lines][Rows]) {
  for (int64_t g = 0; g < block.groups; g += 8) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      Float8 sum;
      __builtin_memcpy(
          &sum, block.sums + r * block.sums_stride + g, sizeof(sum));
#pragma GCC unroll 4
      for (int i = 0; i < Lines; ++i) {
        Float8 bias;
        __builtin_memcpy(&bias, block.biases[i] + g, sizeof(bias));
        total[i][r] += bias * sum;
      }
    }
  }
}

/// results[i * Rows + r]: Lines x Rows dot products.
template <int Bits, int Groups, int Lines, int Rows>
void dot_block(const QmvBlock& block, float* results) {
  using C = Codes<Bits>;
  constexpr int kTileFloats = C::count * Rows;
  Float8 total[Lines][Rows];
  Float8 part[Lines][Rows];
  Word8 lanes[Lines];
  clear(total);
  const float* x = block.x;
  int64_t offset = 0;
  int64_t group = 0;
  int64_t tiles = block.depth / C::count;
  for (; tiles >= block.tiles_per_group; tiles -= block.tiles_per_group) {
    clear(part);
    for (int64_t t = 0; t < block.tiles_per_group; ++t) {
#pragma GCC unroll 4
      for (int i = 0; i < Lines; ++i) {
        __builtin_prefetch(block.codes[i] + offset + 512);
        load_tile<Bits>(block.codes[i] + offset, lanes[i]);
      }
      add_tile<Bits, Lines, Rows>(lanes, x, part);
      offset += C::bytes;
      x += kTileFloats;
    }
    add_scaled<Groups, Lines, Rows>(block.scales, group, part, total);
    group += Groups;
  }
  if (int rest = int(block.depth % C::count); rest > 0) {
    clear(part);
#pragma GCC unroll 4
    for (int i = 0; i < Lines; ++i) {
      load_tile_part<Bits>(block.codes[i] + offset, rest * Bits / 8, lanes[i]);
    }
    add_tile<Bits, Lines, Rows>(lanes, x, part);
    add_scaled<Groups, Lines, Rows>(block.scales, group, part, total);
  }
  add_biases<Lines, Rows>(block, total);
  alignas(32) float stored[Lines * Rows][8];
  __builtin_memcpy(stored, total, sizeof(stored));
  for (int i = 0; i < Lines * Rows; ++i) {
    const float* s = stored[i];
    results[i] =
        ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
  }
}

struct QmvOutput {
  float* data;
  int64_t stride;
};

template <int Bits, int Groups, int Lines, int Rows>
void dot_lines(
    const QuantizedMatrix& w,
    QmvBlock block,
    int64_t first,
    int64_t lines,
    float* work,
    QmvOutput out) {
  int64_t groups = w.cols / w.group_size;
  int64_t room = block.groups + 8;  // a last tile may look past the groups
  const uint8_t* codes = static_cast<const uint8_t*>(w.codes);
  for (int64_t line = 0; line < lines; line += Lines) {
    for (int i = 0; i < Lines; ++i) {
      // Lines past the end repeat the last one.
      int64_t at = first + (line + i < lines ? line + i : lines - 1);
      float* scales = work + 2 * i * room;
      float* biases = scales + room;
      load_floats(w.scales, w.type, at * groups, groups, room, scales);
      load_floats(w.biases, w.type, at * groups, groups, room, biases);
      block.codes[i] = codes + at * (w.cols * Bits / 8);
      block.scales[i] = scales;
      block.biases[i] = biases;
    }
    float results[Lines * Rows];
    dot_block<Bits, Groups, Lines, Rows>(block, results);
    for (int i = 0; i < Lines && line + i < lines; ++i) {
      for (int r = 0; r < Rows; ++r) {
        out.data[r * out.stride + line + i] = results[i * Rows + r];
      }
    }
  }
}

template <int Bits, int Groups>
void dot_rows(
    const QuantizedMatrix& w,
    const QmvBlock& block,
    int64_t rows,
    int64_t first,
    int64_t lines,
    float* work,
    QmvOutput out) {
  switch (rows) {
    case 1:
      return dot_lines<Bits, Groups, 4, 1>(w, block, first, lines, work, out);
    case 2:
      return dot_lines<Bits, Groups, 2, 2>(w, block, first, lines, work, out);
    case 3:
      return dot_lines<Bits, Groups, 1, 3>(w, block, first, lines, work, out);
    default:
      return dot_lines<Bits, Groups, 1, 4>(w, block, first, lines, work, out);
  }
}

/// One tile of x in the order in which codes lie in their words, each lane
/// divided by the power of two that its codes carry: a transpose, as lanes
/// hold neighbours. Reads up to 8 numbers past the tile.
template <int Bits>
MLX_INLINE void arrange_tile(const float* x, float* to) {
  using C = Codes<Bits>;
  constexpr int kUsed = C::per_lane < 8 ? C::per_lane : 8;
#pragma GCC unroll 2
  for (int start = 0; start < C::per_lane; start += 8) {
    Float8 rows[8];
#pragma GCC unroll 8
    for (int lane = 0; lane < 8; ++lane) {
      __builtin_memcpy(
          &rows[lane], x + lane * C::per_lane + start, sizeof(Float8));
    }
    transpose_registers<8>(rows);
#pragma GCC unroll 8
    for (int j = 0; j < kUsed; ++j) {
      float even = C::unscale(0, start + j);
      float odd = C::unscale(1, start + j);
      rows[j] *= Float8{even, odd, even, odd, even, odd, even, odd};
      __builtin_memcpy(to + (start + j) * 8, &rows[j], sizeof(Float8));
    }
  }
}

/// Tiles of x for `rows` rows side by side; zeros past the end of x.
template <int Bits>
void arrange(const float* x, int64_t rows, int64_t depth, float* to) {
  using C = Codes<Bits>;
  for (int64_t start = 0; start < depth; start += C::count) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = x + r * depth + start;
      if (depth - start < C::count + 8) {
        int64_t left = depth - start < C::count ? depth - start : C::count;
        alignas(32) float padded[C::count + 8] = {};
        __builtin_memcpy(padded, from, size_t(left) * sizeof(float));
        arrange_tile<Bits>(padded, to);
      } else {
        arrange_tile<Bits>(from, to);
      }
      to += C::count;
    }
  }
}

/// Sums over groups, in the order of the lanes of a vector of 8.
void sum_groups(const float* x, int64_t groups, int group_size, float* to) {
  for (int64_t g = 0; g < groups; ++g) {
    Float8 sum = {};
    for (int i = 0; i < group_size; i += 8) {
      Float8 part;
      __builtin_memcpy(&part, x + g * group_size + i, sizeof(part));
      sum += part;
    }
    to[g] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
            ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  }
}

}  // namespace

void qmv_arrange(
    const float* x,
    int64_t rows,
    int64_t depth,
    int bits,
    int group_size,
    float* arranged,
    float* sums) {
  int64_t stride = qmv_sums_size(depth, group_size);
  int64_t groups = depth / group_size;
  for (int64_t r = 0; r < rows; ++r) {
    sum_groups(x + r * depth, groups, group_size, sums + r * stride);
    for (int64_t g = groups; g < stride; ++g) {
      sums[r * stride + g] = 0;
    }
  }
  for (int64_t r = 0; r < rows;) {
    int64_t part = r == 0 ? pass_rows(rows) : rows - r;
    with_bits(bits, [&]<int Bits>() {
      arrange<Bits>(
          x + r * depth, part, depth, arranged + r * qmv_arranged_size(depth));
    });
    r += part;
  }
}

void qmv_lines(
    const QuantizedMatrix& w,
    const float* arranged,
    const float* sums,
    int64_t rows,
    int64_t first,
    int64_t lines,
    float* work,
    float* out,
    int64_t out_stride) {
  for (int64_t r = 0; r < rows;) {
    int64_t part = r == 0 ? pass_rows(rows) : rows - r;
    QmvBlock block = {};
    block.x = arranged + r * qmv_arranged_size(w.cols);
    block.sums_stride = qmv_sums_size(w.cols, w.group_size);
    block.sums = sums + r * block.sums_stride;
    block.depth = w.cols;
    block.groups = block.sums_stride;
    with_bits(w.bits, [&]<int Bits>() {
      int64_t tiles = w.group_size / Codes<Bits>::count;
      block.tiles_per_group = tiles > 1 ? tiles : 1;
      with_groups<Bits>(w.group_size, [&]<int Groups>() {
        dot_rows<Bits, Groups>(
            w,
            block,
            part,
            first,
            lines,
            work,
            {out + r * out_stride, out_stride});
      });
    });
    r += part;
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
