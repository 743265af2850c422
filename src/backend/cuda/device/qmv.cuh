// Few rows times a transposed quantized matrix by tensor cores, half types.
//
// A block takes 16 lines of w (columns of the result) and up to 1, 4 or 8 rows
// of x, or 32 lines and up to 16 or 32 rows; its warps share the groups of
// those lines, eight in a round. Codes are one operand, exact in a half type;
// what they sum up to with x is scaled group by group in float32. The sum of x
// over a group, which the bias wants, comes from a product with ones.
//
// A product has eight columns. Fewer rows of x leave some free: these take the
// same row for other groups, with zeros where codes belong to another group. So
// a lane reads 16 bytes of a line at a time where it can, and scales the sums
// of several groups at once.
//
// Lane l reads a quarter (l%4) of every load of lines l/4 and l/4 + 8: w is
// read once, in whole sectors. A lane has up to 64 bytes on their way in
// registers, the next asked for as soon as some are used: 56 KB of a
// multiprocessor with 28 warps, which 72 registers allow; with one row, twice
// that in 16 warps of 128 registers, which is a twelfth faster. A product adds
// over k in any order, so lanes take codes as they lie in a word, and x in the
// same order from the L1 cache.
//
// Blocks take their places while the kernel before is ending, if it is such a
// one too, and ask for their first codes meanwhile: a matrix of 29 MB is read
// at 1.81 TB/s instead of 1.77.
#pragma once

#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/overlap.cuh"
#include "backend/cuda/device/qmv_lane.cuh"

namespace mlx::core::cuda {

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
__global__ void __maxnreg__((kQmvRegisters<Rows, Tiles>)) qmv(QmvParams<T> p) {
  using S = QmvShape<Bits, Group, Rows>;
  constexpr int kRound = kQmvRound * Group;
  extern __shared__ float shared[];
  int first = threadIdx.x / 32 * kRound;
  int stride = blockDim.x / 32 * kRound;
  constexpr int kStrips = kQmvStrips<Tiles>;
  QmvCodes<Bits, Group, Rows, kStrips> from;
  QmvPlace<T, Rows, Tiles> place;
  begin_qmv<T>(p, first, from, place);
  // Nothing is asked for before: that takes longer than it saves (1746 in place
  // of 1905 GB/s of codes, H200).
  begin_after(from.lines, place.scales, place.x);
  uint32_t codes[S::ring][2 * kStrips][S::words] = {};
#pragma unroll
  for (int t = 0; t < S::ring; ++t) {
    from.load(t, codes[t]);
  }
  if constexpr (Rows == 1) {
    place.prefetch(0, S::codes);
  }
  float sums[kStrips][Tiles][4] = {};
#pragma unroll 1
  for (; first < p.depth; first += stride) {
    QmvNumbers<kStrips> numbers = place.load_numbers();
    if constexpr (Rows == 1) {
      place.prefetch(stride, S::codes);
    }
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
