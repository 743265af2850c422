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
#include "backend/cpu/simd/vec_sums.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

/// Most rows of x in one pass over a line.
constexpr int kPassRows = 4;
/// Lines whose scales and biases become floats together: those of one line are
/// often few.
constexpr int64_t kScaleLines = 8;

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
  int64_t groups;
  int64_t tiles_per_group;
  int64_t ahead;  // bytes from a code to the one to prefetch with it
};

/// Sums for each line and row. An addition takes four cycles and two can begin
/// in each, so eight chains of additions must be on their way: those of a tile
/// are spread over several sums.
template <int Lines, int Rows>
struct Parts {
  static constexpr int chains = Lines * Rows < 4 ? 4 / (Lines * Rows) : 1;
  Float8 v[Lines][Rows][chains];
};

/// The dot products of one tile, not yet scaled: the parts if First, else added
/// to them.
template <int Bits, bool First, int Lines, int Rows>
MLX_INLINE void add_tile(
    const Word8 (&lanes)[Lines], const float* x, Parts<Lines, Rows>& parts) {
  constexpr int n = Codes<Bits>::per_lane;
  constexpr int chains = Parts<Lines, Rows>::chains;
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
        if (First && j < chains) {
          parts.v[i][r][j % chains] = value[i] * xr;
        } else {
          parts.v[i][r][j % chains] += value[i] * xr;
        }
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
    const Parts<Lines, Rows>& parts,
    Float8 (&total)[Lines][Rows]) {
  constexpr int chains = Parts<Lines, Rows>::chains;
#pragma GCC unroll 4
  for (int i = 0; i < Lines; ++i) {
    Float8 scale;
    spread_groups<Groups>(scales[i] + group, scale);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const Float8* v = parts.v[i][r];
      Float8 sum = v[0];
      if constexpr (chains == 2) {
        sum = v[0] + v[1];
      } else if constexpr (chains == 4) {
        sum = (v[0] + v[1]) + (v[2] + v[3]);
      }
      total[i][r] += scale * sum;
    }
  }
}

template <int Lines, int Rows>
MLX_INLINE void add_biases(
    const QmvBlock& block,
    int64_t group,
    const Word8& mask,
    Float8 (&total)[Lines][Rows]) {
#pragma GCC unroll 4
  for (int i = 0; i < Lines; ++i) {
    Word8 bits;
    __builtin_memcpy(&bits, block.biases[i] + group, sizeof(bits));
    Float8 bias = Float8(bits & mask);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      Float8 sum;
      __builtin_memcpy(
          &sum, block.sums + r * block.sums_stride + group, sizeof(sum));
      total[i][r] += bias * sum;
    }
  }
}

/// Adds bias * sum(x) over all groups; lanes are groups here. What follows the
/// last bias belongs to other lines.
template <int Lines, int Rows>
MLX_INLINE void add_all_biases(
    const QmvBlock& block, Float8 (&total)[Lines][Rows]) {
  int64_t g = 0;
  for (; g + 8 <= block.groups; g += 8) {
    add_biases<Lines, Rows>(block, g, ~Word8{}, total);
  }
  if (g < block.groups) {
    uint32_t left = uint32_t(block.groups - g);
    Word8 mask = Word8(Word8{0, 1, 2, 3, 4, 5, 6, 7} < left);
    add_biases<Lines, Rows>(block, g, mask, total);
  }
}

/// Four lanes whose sum is that of all eight.
MLX_INLINE __m128 fold_tile(const Float8& v) {
#if MLX_ISA_LEVEL >= 3
  return fold_lanes(__m256(v));
#else
  __m128 half[2];
  __builtin_memcpy(half, &v, sizeof(half));
  return half[0] + half[1];
#endif
}

/// sums[i * Rows + r] = the sum over the lanes of v[i][r].
template <int Lines, int Rows>
MLX_INLINE void sum_lanes(const Float8 (&v)[Lines][Rows], float* sums) {
  static_assert(Lines * Rows <= 4);
  __m128 half[4] = {};
#pragma GCC unroll 4
  for (int i = 0; i < Lines * Rows; ++i) {
    half[i] = fold_tile(v[i / Rows][i % Rows]);
  }
  __m128 sum = lane_sums(half[0], half[1], half[2], half[3]);
  __builtin_memcpy(sums, &sum, Lines * Rows * sizeof(float));
}

template <int Bits, bool First, int Lines, int Rows>
MLX_INLINE void next_tile(
    const QmvBlock& block,
    int64_t offset,
    const float* x,
    Parts<Lines, Rows>& parts) {
  Word8 lanes[Lines];
#pragma GCC unroll 4
  for (int i = 0; i < Lines; ++i) {
    __builtin_prefetch(block.codes[i] + offset + block.ahead);
    load_tile<Bits>(block.codes[i] + offset, lanes[i]);
  }
  add_tile<Bits, First, Lines, Rows>(lanes, x, parts);
}

/// results[i * Rows + r]: Lines x Rows dot products.
template <int Bits, int Groups, int Lines, int Rows>
void dot_block(const QmvBlock& block, float* results) {
  using C = Codes<Bits>;
  constexpr int kTileFloats = C::count * Rows;
  Float8 total[Lines][Rows];
  Parts<Lines, Rows> parts;
  clear(total);
  const float* x = block.x;
  int64_t offset = 0;
  int64_t group = 0;
  int64_t tiles = block.depth / C::count;
  for (; tiles >= block.tiles_per_group; tiles -= block.tiles_per_group) {
    next_tile<Bits, true, Lines, Rows>(block, offset, x, parts);
    offset += C::bytes;
    x += kTileFloats;
    if constexpr (Groups == 1) {
      for (int64_t t = 1; t < block.tiles_per_group; ++t) {
        next_tile<Bits, false, Lines, Rows>(block, offset, x, parts);
        offset += C::bytes;
        x += kTileFloats;
      }
    }
    add_scaled<Groups, Lines, Rows>(block.scales, group, parts, total);
    group += Groups;
  }
  if (int rest = int(block.depth % C::count); rest > 0) {
    Word8 lanes[Lines];
    float scales[Lines][Groups] = {};  // no other line's after the last
    const float* scale_of[4];
#pragma GCC unroll 4
    for (int i = 0; i < Lines; ++i) {
      load_tile_part<Bits>(block.codes[i] + offset, rest * Bits / 8, lanes[i]);
      for (int64_t g = group; g < block.groups; ++g) {
        scales[i][g - group] = block.scales[i][g];
      }
      scale_of[i] = scales[i];
    }
    add_tile<Bits, true, Lines, Rows>(lanes, x, parts);
    add_scaled<Groups, Lines, Rows>(scale_of, 0, parts, total);
  }
  add_all_biases<Lines, Rows>(block, total);
  sum_lanes(total, results);
}

/// Asks for the scales or biases [start, start + count).
MLX_INLINE void prefetch(
    const void* base, Dtype type, int64_t start, int64_t count) {
  constexpr int64_t kCacheLine = 64;
  const char* from = static_cast<const char*>(base) + start * type.size();
  for (int64_t at = 0; at < count * type.size(); at += kCacheLine) {
    __builtin_prefetch(from + at);
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
  const int64_t line_bytes = w.cols * Bits / 8;
  // Bytes that come within the 0.2 us that memory takes; measured.
  block.ahead = line_bytes >= 2048 ? 4096 : 2048;
  const uint8_t* codes =
      static_cast<const uint8_t*>(w.codes) + first * line_bytes;
  const int64_t room = kScaleLines * block.groups + 8;
  float* scales = work;
  float* biases = work + room;
  for (int64_t line = 0; line < lines; ++line) {
    int64_t part = line % kScaleLines;
    if (part == 0) {
      int64_t left = lines - line < kScaleLines ? lines - line : kScaleLines;
      int64_t start = (first + line) * block.groups;
      int64_t count = left * block.groups;
      load_floats(w.scales, w.type, start, count, count + 8, scales);
      load_floats(w.biases, w.type, start, count, count + 8, biases);
      prefetch(w.scales, w.type, start + count, count);
      prefetch(w.biases, w.type, start + count, count);
    }
    if (part % Lines != 0) {
      continue;
    }
    for (int i = 0; i < Lines; ++i) {
      // Lines past the end repeat the last one.
      int64_t at = line + i < lines ? i : lines - 1 - line;
      block.codes[i] = codes + (line + at) * line_bytes;
      block.scales[i] = scales + (part + at) * block.groups;
      block.biases[i] = biases + (part + at) * block.groups;
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
      return dot_lines<Bits, Groups, 2, 1>(w, block, first, lines, work, out);
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
    block.groups = w.cols / w.group_size;
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
