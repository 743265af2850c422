// How a lane of device/qmv.cuh walks a quantized matrix: rounds of eight
// groups, loads of a round, and where codes, scales, biases and x lie for it.
#pragma once

#include "backend/cuda/device/codes.cuh"

namespace mlx::core::cuda {

/// Strips of 16 lines that share what is done to x.
template <int Tiles>
inline constexpr int kQmvStrips = Tiles == 1 ? 1 : 2;
template <int Tiles>
inline constexpr int kQmvLines = 16 * kQmvStrips<Tiles>;
constexpr int kQmvRound = 8;  // groups
/// One row is limited by what is on its way, which stays in registers.
template <int Rows, int Tiles>
inline constexpr int kQmvRegisters = Rows == 1    ? 128
                                     : Tiles == 1 ? 72
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
  static constexpr int most = (Rows == 1 ? 16 : 8) / words;
  static constexpr int ring = all_loads < most ? all_loads : most;
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

  /// Asks for 1 KB of the only row, `codes` further on, while codes are on
  /// their way.
  __device__ __forceinline__ void prefetch(int codes, int own_codes) const {
    int lane = static_cast<int>(threadIdx.x % 32);
    int ahead = codes + lane * 16 - quarter * own_codes;
    if (ahead < left) {
      asm volatile("prefetch.global.L1 [%0];" ::"l"(x[0] + ahead));
    }
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

}  // namespace mlx::core::cuda
