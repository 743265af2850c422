// Few rows times a transposed quantized matrix by tensor cores, half types.
//
// A block takes 16 lines of w (columns of the result) and up to 1, 4 or 8 rows
// of x, or 32 lines and up to 16 or 32 rows; its warps share the groups of
// those lines, eight in a round. Codes are one operand, exact in a half type;
// what they sum up to with x is scaled group by group in float32. The sum of x
// over a group, which the bias wants, comes from a product with ones. A product
// has eight columns. Fewer rows of x leave some free: these take the same row
// for other groups, with zeros where codes belong to another group. So a lane
// reads 16 bytes of a line at a time whatever the group, and scales the sums of
// eight groups at once. Lane l reads a quarter (l%4) of every load of lines l/4
// and l/4 + 8: w is read once, in whole sectors. A lane has up to 64 bytes on
// their way in registers, the next of them asked for as soon as some are used:
// 56 KB of a multiprocessor with 28 warps, which 72 registers allow. A product
// adds over k in any order, so lanes take codes as they lie in a word, and x is
// taken in the same order from the L1 cache.
#pragma once

#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/device/mma.cuh"

namespace mlx::core::cuda {

/// Strips of 16 lines that share what is done to x.
template <int Tiles>
inline constexpr int kQmvStrips = Tiles == 1 ? 1 : 2;
template <int Tiles>
inline constexpr int kQmvLines = 16 * kQmvStrips<Tiles>;
constexpr int kQmvRound = 8;  // groups
template <int Tiles>
inline constexpr int kQmvRegisters = Tiles == 1   ? 72
                                     : Tiles == 2 ? 160
                                                  : 224;

template <typename T>
struct QmvParams {
  const uint32_t* codes;
  const T* scales;
  const T* biases;
  const T* x;  // contiguous rows, 16-byte aligned
  T* out;
  int64_t lines;
  int64_t rows;
  int depth;
  bool pairs;  // two scales or biases, from an even group on, are one word
};

/// How a lane reads a round of one line; Rows of x share eight columns.
template <int Bits, int Group, int Rows>
struct QmvShape {
  static constexpr bool whole_words = Bits == 4 || Bits == 8;
  /// Groups that one product takes.
  static constexpr int slots = 8 / Rows;
  static constexpr int widest = whole_words ? 128 / Bits : 8;
  /// Codes and words of a load.
  static constexpr int codes =
      widest < slots * Group / 4 ? widest : slots * Group / 4;
  static constexpr int words = whole_words ? codes * Bits / 32 : 2;
  /// Loads of all slots, of a round, and under way.
  static constexpr int loads = slots * Group / (4 * codes);
  static constexpr int all_loads = kQmvRound * Group / (4 * codes);
  static constexpr int ring = all_loads < 8 / words ? all_loads : 8 / words;
  static_assert(all_loads % ring == 0 && codes % 8 == 0);
};

/// Scales and biases of a lane's lines, two groups each.
template <int Strips>
struct QmvNumbers {
  uint32_t scales[2 * Strips] = {};
  uint32_t biases[2 * Strips] = {};
};

/// Where a lane reads codes: its next round, of two lines a strip.
template <int Bits, int Group, int Rows, int Strips>
struct QmvCodes {
  using S = QmvShape<Bits, Group, Rows>;
  const uint32_t*
      lines[2 * Strips];  // the lane's first; at odd widths, the octet's
  int quarter;
  int left;  // codes, from the lane's first

  /// Begins load t of the round; past the end the registers stay as they are.
  __device__ __forceinline__ void load(
      int t, uint32_t (&to)[2 * Strips][S::words]) const {
    constexpr int kStep = 4 * S::codes;
    if (t * kStep >= left) {
      return;
    }
#pragma unroll
    for (int i = 0; i < 2 * Strips; ++i) {
      const uint32_t* from = lines[i] + t * kStep / 32 * Bits;
      if constexpr (S::whole_words) {
        auto pack = load_pack<S::words>(from);
#pragma unroll
        for (int j = 0; j < S::words; ++j) {
          to[i][j] = pack[j];
        }
      } else {
        uint64_t both = load_eight_codes(from, quarter, Bits);
        to[i][0] = static_cast<uint32_t>(both);
        to[i][1] = static_cast<uint32_t>(both >> 32);
      }
    }
  }

  __device__ __forceinline__ void advance(int codes) {
#pragma unroll
    for (const uint32_t*& line : lines) {
      line += codes / 32 * Bits;
    }
    left -= codes;
  }
};

/// Where a lane reads all else: the round that is computed.
template <typename T, int Rows, int Tiles>
struct QmvPlace {
  static constexpr int strips = kQmvStrips<Tiles>;
  const uint16_t* scales;   // of the first line, two groups a lane
  int64_t biases;           // from the scales, in numbers
  int to_line[2 * strips];  // numbers, from the first line
  const T* x[Tiles];
  int quarter;
  int before_slot;  // from the codes of the lane's column to its own
  int left;         // codes, from the lane's first
  int groups_left;  // from the lane's two
  bool pairs;

  /// Two numbers, zero past the end.
  __device__ __forceinline__ uint32_t load_two(const uint16_t* from) const {
    uint32_t two = 0;
    if (groups_left > 0) {
      two = __ldg(from);
    }
    if (groups_left > 1) {
      two |= uint32_t(__ldg(from + 1)) << 16;
    }
    return two;
  }

  __device__ __forceinline__ QmvNumbers<strips> load_numbers() const {
    QmvNumbers<strips> to;
    if (pairs) {
      if (groups_left > 0) {
#pragma unroll
        for (int i = 0; i < 2 * strips; ++i) {
          const uint16_t* from = scales + to_line[i];
          to.scales[i] = __ldg(reinterpret_cast<const uint32_t*>(from));
          from += biases;
          to.biases[i] = __ldg(reinterpret_cast<const uint32_t*>(from));
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < 2 * strips; ++i) {
        to.scales[i] = load_two(scales + to_line[i]);
        to.biases[i] = load_two(scales + to_line[i] + biases);
      }
    }
    return to;
  }

  __device__ __forceinline__ void advance(int codes, int groups) {
    scales += groups;
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      x[tile] += codes;
    }
    left -= codes;
    groups_left -= groups;
  }
};

/// Both places for the round that begins at code `first`.
template <typename T, int Bits, int Group, int Rows, int Tiles>
__device__ __forceinline__ void begin_qmv(
    const QmvParams<T>& p,
    int first,
    QmvCodes<Bits, Group, Rows, kQmvStrips<Tiles>>& codes,
    QmvPlace<T, Rows, Tiles>& place) {
  using S = QmvShape<Bits, Group, Rows>;
  int lane = threadIdx.x % 32;
  int quarter = lane % 4;
  int column = lane / 4;
  int groups = p.depth / Group;
  int pitch = p.depth / 32 * Bits;
  // Past the end the last line or row is read, and not written.
  int64_t line = int64_t(blockIdx.x) * kQmvLines<Tiles> + column;
  line = min(line, p.lines - 1);
  int before = first / 32 * Bits + (S::whole_words ? quarter * S::words : 0);
  codes.lines[0] = p.codes + line * pitch + before;
  codes.quarter = quarter;
  codes.left = p.depth - first - quarter * S::codes;
  auto* scales = reinterpret_cast<const uint16_t*>(p.scales);
  int group = first / Group + 2 * quarter;
  place.scales = scales + line * groups + group;
  place.biases = reinterpret_cast<const uint16_t*>(p.biases) - scales;
#pragma unroll
  for (int i = 0; i < 2 * kQmvStrips<Tiles>; ++i) {
    auto further = static_cast<int>(min(line + 8 * i, p.lines - 1) - line);
    codes.lines[i] = codes.lines[0] + further * pitch;
    place.to_line[i] = further * groups;
  }
  place.quarter = quarter;
  place.before_slot = quarter * S::codes - column / Rows * Group;
  place.left = codes.left;
  place.groups_left = groups - group;
  place.pairs = p.pairs;
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
    int64_t row =
        int64_t(blockIdx.y) * (Rows * Tiles) + tile * Rows + column % Rows;
    row = min(row, p.rows - 1);
    place.x[tile] = p.x + row * p.depth + first + quarter * S::codes;
  }
}

/// Sums of one product's eight columns.
template <int Tiles>
struct QmvProducts {
  float codes[kQmvStrips<Tiles>][Tiles][4] = {};
  float ones[Tiles][4] = {};
};

/// Adds what load t of a round has brought.
template <int Bits, int Group, typename T, int Rows, int Tiles>
__device__ __forceinline__ void add_load(
    const QmvPlace<T, Rows, Tiles>& place,
    int t,
    const uint32_t (
        &codes)[2 * kQmvStrips<Tiles>][QmvShape<Bits, Group, Rows>::words],
    QmvProducts<Tiles>& products) {
  using S = QmvShape<Bits, Group, Rows>;
  constexpr uint32_t kOnes =
      std::is_same_v<T, half> ? 0x3c003c00u : 0x3f803f80u;
  int at = t * 4 * S::codes;
  bool mine = at < place.left;
  if constexpr (S::slots > 1) {
    auto in_slot =
        static_cast<unsigned>(t % S::loads * 4 * S::codes + place.before_slot);
    mine = mine && in_slot < unsigned(Group);
  }
#pragma unroll
  for (int octet = 0; octet < S::codes / 8; ++octet) {
    constexpr int kWords = Bits == 4 ? 1 : 2;
    uint32_t pairs[2 * kQmvStrips<Tiles>][4];
    int low = octet * kWords;
    int high = low + kWords - 1;
#pragma unroll
    for (int i = 0; i < 2 * kQmvStrips<Tiles>; ++i) {
      unpack_pairs<T, Bits>(codes[i][low], codes[i][high], pairs[i]);
    }
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      uint4 x = {};
      if (mine) {
        x = __ldg(
            reinterpret_cast<const uint4*>(place.x[tile] + at + octet * 8));
      }
      uint32_t by[4];
      order_pairs<Bits>(x, by);
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
#pragma unroll
        for (int strip = 0; strip < kQmvStrips<Tiles>; ++strip) {
          multiply_tiles<T>(
              products.codes[strip][tile],
              pairs[2 * strip][i],
              pairs[2 * strip + 1][i],
              pairs[2 * strip][i + 1],
              pairs[2 * strip + 1][i + 1],
              by[i],
              by[i + 1]);
        }
        multiply_tiles<T>(
            products.ones[tile], kOnes, kOnes, kOnes, kOnes, by[i], by[i + 1]);
      }
    }
  }
}

template <typename T>
__device__ __forceinline__ float number_of(uint32_t word, int place) {
  auto bits = static_cast<uint16_t>(word >> (16 * place));
  return to_compute(reinterpret_cast<const T&>(bits));
}

/// Scales the products that end with slots' groups, the `step`th of a round.
template <typename T, int Bits, int Rows, int Tiles>
__device__ __forceinline__ void scale_products(
    const QmvProducts<Tiles>& products,
    const QmvNumbers<kQmvStrips<Tiles>>& numbers,
    int step,
    float (&sums)[kQmvStrips<Tiles>][Tiles][4]) {
  constexpr float kOffset = pair_offset_v<T, Bits>;
  int quarter = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int line = 0; line < 2 * kQmvStrips<Tiles>; ++line) {
    float scale[2];
    float bias[2];
    if constexpr (Rows == 1) {
      // Both columns of the lane are groups of their own.
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        scale[i] = number_of<T>(numbers.scales[line], i);
        bias[i] = number_of<T>(numbers.biases[line], i);
      }
    } else {
      int group = step * (8 / Rows) + 2 * quarter / Rows;
      uint32_t mine =
          __shfl_sync(0xffffffffu, numbers.scales[line], group / 2, 4);
      uint32_t other =
          __shfl_sync(0xffffffffu, numbers.biases[line], group / 2, 4);
      scale[0] = scale[1] = number_of<T>(mine, group % 2);
      bias[0] = bias[1] = number_of<T>(other, group % 2);
    }
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float shift = fmaf(-kOffset, scale[i], bias[i]);
        int at = line % 2 * 2 + i;
        float& sum = sums[line / 2][tile][at];
        sum = fmaf(shift, products.ones[tile][i], sum);
        sum = fmaf(scale[i], products.codes[line / 2][tile][at], sum);
      }
    }
  }
}

/// Adds the columns that are one row's and the warps' sums, and writes them.
template <typename T, int Rows, int Tiles>
__device__ __forceinline__ void finish_qmv(
    const QmvParams<T>& p,
    float (&sums)[kQmvStrips<Tiles>][Tiles][4],
    float* shared) {
  constexpr int kLines = kQmvLines<Tiles>;
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int warps = blockDim.x / 32;
#pragma unroll
  for (int strip = 0; strip < kQmvStrips<Tiles>; ++strip) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      float(&four)[4] = sums[strip][tile];
      if constexpr (Rows == 1) {
        four[0] += four[1];
        four[2] += four[3];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int other = 2; other >= (Rows == 1 ? 1 : Rows / 2); other /= 2) {
          four[i] += __shfl_xor_sync(0xffffffffu, four[i], other);
        }
        // By strip, tile, i and lane.
        int at = (strip * Tiles + tile) * 4 + i;
        shared[(warp * (kLines / 4 * Tiles) + at) * 32 + lane] = four[i];
      }
    }
  }
  __syncthreads();
  int64_t first_line = int64_t(blockIdx.x) * kLines;
  int64_t first_row = int64_t(blockIdx.y) * (Rows * Tiles);
  for (int at = threadIdx.x; at < kLines * Rows * Tiles; at += blockDim.x) {
    int line = at % kLines;
    int row = at / kLines;
    if (first_line + line >= p.lines || first_row + row >= p.rows) {
      continue;
    }
    int tile = line / 16 * Tiles + row / Rows;
    int i = line % 16 / 8 * 2 + row % Rows % 2;
    int holder = (tile * 4 + i) * 32 + line % 8 * 4 + row % Rows / 2;
    float sum = 0.0f;
    for (int other = 0; other < warps; ++other) {
      sum += shared[other * (kLines / 4 * Tiles) * 32 + holder];
    }
    p.out[(first_row + row) * p.lines + first_line + line] = convert<T>(sum);
  }
}

template <typename T, int Bits, int Group, int Rows, int Tiles>
__global__ void __maxnreg__(kQmvRegisters<Tiles>) qmv(QmvParams<T> p) {
  using S = QmvShape<Bits, Group, Rows>;
  constexpr int kRound = kQmvRound * Group;
  extern __shared__ float shared[];
  int first = threadIdx.x / 32 * kRound;
  int stride = blockDim.x / 32 * kRound;
  constexpr int kStrips = kQmvStrips<Tiles>;
  QmvCodes<Bits, Group, Rows, kStrips> from;
  QmvPlace<T, Rows, Tiles> place;
  begin_qmv<T>(p, first, from, place);
  uint32_t codes[S::ring][2 * kStrips][S::words] = {};
#pragma unroll
  for (int t = 0; t < S::ring; ++t) {
    from.load(t, codes[t]);
  }
  float sums[kStrips][Tiles][4] = {};
#pragma unroll 1
  for (; first < p.depth; first += stride) {
    QmvNumbers<kStrips> numbers = place.load_numbers();
    QmvProducts<Tiles> products;
#pragma unroll
    for (int t = 0; t < S::all_loads; ++t) {
      add_load<Bits, Group>(place, t, codes[t % S::ring], products);
      int next = (t + S::ring) % S::all_loads;
      if (next == 0) {
        from.advance(stride);
      }
      from.load(next, codes[t % S::ring]);
      if (t % S::loads == S::loads - 1) {
        scale_products<T, Bits, Rows>(products, numbers, t / S::loads, sums);
        products = {};
      }
    }
    place.advance(stride, stride / Group);
  }
  finish_qmv<T, Rows, Tiles>(p, sums, shared);
}

}  // namespace mlx::core::cuda
