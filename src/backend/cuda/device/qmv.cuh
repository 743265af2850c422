// Few rows times a transposed quantized matrix by tensor cores, half types.
//
// A block takes 16 lines of w (columns of the result) and up to 8, 16 or 32
// rows of x; its warps share the groups of those lines. The codes themselves
// are one operand, exact in a half type; what they sum up to with x is scaled
// group by group in float32. The sum of x over the group, which the bias wants,
// comes from a product with ones.
// Lane l reads a quarter (l%4) of a group of lines l/4 and l/4 + 8, 64 bytes in
// flight: w is read once, in whole sectors of 32 bytes. A product adds over k
// in any order, so lanes take codes as they lie in a word, and x is taken in
// the same order from the L1 cache.
#pragma once

#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/device/mma.cuh"

namespace mlx::core::cuda {

constexpr int kQmvLines = 16;

template <typename T>
struct QmvParams {
  const uint32_t* codes;
  const T* scales;
  const T* biases;
  const T* x;  // contiguous rows, 16-byte aligned
  T* out;
  int64_t lines;
  int64_t rows;
  int64_t depth;
  int64_t row_words;
  int scale_shift;     // units of 32 codes in a group, as a power of two
  bool scales_packed;  // scales and biases of one step are one access
};

/// How a lane reads one unit: a group, or 32 codes of one for widths that are
/// not powers of two.
template <int Bits, int Unit, int Tiles>
struct QmvUnit {
  static constexpr int octets = Unit / 32;  // of a lane and line
  static constexpr bool whole_words = Bits == 4 || Bits == 8;
  static constexpr int words = whole_words ? octets * Bits / 4 : 2;
  /// Units in flight: 64 bytes of a lane, less where sums want the registers.
  static constexpr int step = Tiles == 1 || words == 8 ? 8 / words : 4 / words;
};

template <int Bits, int Unit, int Tiles>
__device__ __forceinline__ void load_unit(
    const uint32_t* line,
    int unit,
    int quarter,
    uint32_t (&words)[QmvUnit<Bits, Unit, Tiles>::words]) {
  using U = QmvUnit<Bits, Unit, Tiles>;
  if constexpr (U::whole_words) {
    const uint32_t* from = line + int64_t(unit * 4 + quarter) * U::words;
    constexpr int V = U::words < 4 ? U::words : 4;
#pragma unroll
    for (int i = 0; i < U::words; i += V) {
      Pack<uint32_t, V> pack = load_pack<V>(from + i);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        words[i + j] = pack[j];
      }
    }
  } else {
    uint64_t codes = load_eight_codes(line, unit * 4 + quarter, Bits);
    words[0] = static_cast<uint32_t>(codes);
    words[1] = static_cast<uint32_t>(codes >> 32);
  }
}

template <typename T, int Bits, int Unit, int Tiles>
__device__ __forceinline__ void unpack_octet(
    const uint32_t (&words)[QmvUnit<Bits, Unit, Tiles>::words],
    int octet,
    uint32_t (&pairs)[4]) {
  if constexpr (Bits == 4) {
    unpack_pairs<T, Bits>(words[octet], 0, pairs);
  } else {
    unpack_pairs<T, Bits>(words[2 * octet], words[2 * octet + 1], pairs);
  }
}

/// Eight numbers of x in the order of unpack_pairs.
template <typename T>
__device__ __forceinline__ void load_x_pairs(
    const T* from, bool inside, uint32_t (&pairs)[4]) {
  uint4 x = make_uint4(0, 0, 0, 0);
  if (inside) {
    x = __ldg(reinterpret_cast<const uint4*>(from));
  }
  pairs[0] = __byte_perm(x.x, x.z, 0x5410);
  pairs[1] = __byte_perm(x.x, x.z, 0x7632);
  pairs[2] = __byte_perm(x.y, x.w, 0x5410);
  pairs[3] = __byte_perm(x.y, x.w, 0x7632);
}

/// Adds one unit of 16 lines times 8 * Tiles rows to the sums.
template <typename T, int Bits, int Unit, int Tiles>
__device__ __forceinline__ void add_unit(
    const uint32_t (&words)[2][QmvUnit<Bits, Unit, Tiles>::words],
    const T* const (&x)[Tiles],
    const bool (&inside)[Tiles],
    int offset,
    const float (&scale)[2],
    const float (&bias)[2],
    float (&sums)[Tiles][4]) {
  constexpr uint32_t kOnes =
      std::is_same_v<T, half> ? 0x3c003c00u : 0x3f803f80u;
  float products[Tiles][4] = {};
  float x_sums[Tiles][4] = {};
#pragma unroll
  for (int octet = 0; octet < QmvUnit<Bits, Unit, Tiles>::octets; ++octet) {
    uint32_t top[4];
    uint32_t bottom[4];
    unpack_octet<T, Bits, Unit, Tiles>(words[0], octet, top);
    unpack_octet<T, Bits, Unit, Tiles>(words[1], octet, bottom);
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      uint32_t by[4];
      load_x_pairs(x[tile] + offset + octet * 8, inside[tile], by);
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        multiply_tiles<T>(
            products[tile],
            top[i],
            bottom[i],
            top[i + 1],
            bottom[i + 1],
            by[i],
            by[i + 1]);
        multiply_tiles<T>(
            x_sums[tile], kOnes, kOnes, kOnes, kOnes, by[i], by[i + 1]);
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float sum = fmaf(bias[i / 2], x_sums[tile][i % 2], sums[tile][i]);
      sums[tile][i] = fmaf(scale[i / 2], products[tile][i], sum);
    }
  }
}

/// Scales or biases of the units of one step, of one line, two in a word.
template <typename T, int Step>
struct StepNumbers {
  uint32_t words[(Step + 1) / 2];

  __device__ __forceinline__ void load(
      const T* line, int unit, int units, int shift, bool packed) {
    if constexpr (Step > 1) {
      if (packed && unit + Step <= units) {
        constexpr int V = Step / 2 < 4 ? Step / 2 : 4;
        Pack<uint32_t, V> pack =
            load_pack<V>(reinterpret_cast<const uint32_t*>(line + unit));
#pragma unroll
        for (int i = 0; i < V; ++i) {
          words[i] = pack[i];
        }
        return;
      }
    }
    auto* from = reinterpret_cast<const uint16_t*>(line);
#pragma unroll
    for (int i = 0; i < Step; i += 2) {
      uint32_t low = from[min(unit + i, units - 1) >> shift];
      uint32_t high = from[min(unit + i + 1, units - 1) >> shift];
      words[i / 2] = low | high << 16;
    }
  }

  __device__ __forceinline__ float operator[](int i) const {
    auto bits = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
    return to_compute(reinterpret_cast<const T&>(bits));
  }
};

/// Adds the warps' sums and writes the results.
template <typename T, int Tiles>
__device__ __forceinline__ void finish_qmv(
    const QmvParams<T>& p,
    int64_t first_line,
    int64_t first_row,
    const float (&sums)[Tiles][4]) {
  extern __shared__ float shared[];  // warps x 4 * Tiles x 32
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int warps = blockDim.x / 32;
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      shared[((warp * Tiles + tile) * 4 + i) * 32 + lane] = sums[tile][i];
    }
  }
  __syncthreads();
  for (int at = threadIdx.x; at < kQmvLines * 8 * Tiles; at += blockDim.x) {
    int line = at % kQmvLines;
    int row = at / kQmvLines;
    if (first_line + line >= p.lines || first_row + row >= p.rows) {
      continue;
    }
    int tile = row / 8;
    int i = line / 8 * 2 + row % 2;
    int holder = line % 8 * 4 + row % 8 / 2;
    float sum = 0.0f;
    for (int other = 0; other < warps; ++other) {
      sum += shared[((other * Tiles + tile) * 4 + i) * 32 + holder];
    }
    p.out[(first_row + row) * p.lines + first_line + line] = convert<T>(sum);
  }
}

/// Seven blocks of four warps on a multiprocessor where there is one tile.
template <typename T, int Bits, int Unit, int Tiles>
__global__ void __maxnreg__(Tiles == 1 ? 72 : 128) qmv(QmvParams<T> p) {
  using U = QmvUnit<Bits, Unit, Tiles>;
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int quarter = lane % 4;
  int warps = blockDim.x / 32;
  int64_t first_line = int64_t(blockIdx.x) * kQmvLines;
  int64_t first_row = int64_t(blockIdx.y) * (8 * Tiles);
  int units = static_cast<int>(p.depth / Unit);
  int groups = units >> p.scale_shift;
  // Lines past the end are read as the last one and not written.
  int64_t line[2];
  line[0] = min(first_line + lane / 4, p.lines - 1);
  line[1] = min(first_line + lane / 4 + 8, p.lines - 1);
  const T* x[Tiles];
  bool inside[Tiles];
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
    int64_t row = first_row + tile * 8 + lane / 4;
    inside[tile] = row < p.rows;
    x[tile] = p.x + (inside[tile] ? row : 0) * p.depth + quarter * (Unit / 4);
  }
  float sums[Tiles][4] = {};
  for (int unit = warp * U::step; unit < units; unit += warps * U::step) {
    uint32_t words[U::step][2][U::words];
    StepNumbers<T, U::step> scales[2];
    StepNumbers<T, U::step> biases[2];
#pragma unroll
    for (int i = 0; i < U::step; ++i) {
      int at = min(unit + i, units - 1);
#pragma unroll
      for (int half_tile = 0; half_tile < 2; ++half_tile) {
        load_unit<Bits, Unit, Tiles>(
            p.codes + line[half_tile] * p.row_words,
            at,
            quarter,
            words[i][half_tile]);
      }
    }
#pragma unroll
    for (int half_tile = 0; half_tile < 2; ++half_tile) {
      int64_t from = line[half_tile] * groups;
      scales[half_tile].load(
          p.scales + from, unit, units, p.scale_shift, p.scales_packed);
      biases[half_tile].load(
          p.biases + from, unit, units, p.scale_shift, p.scales_packed);
    }
#pragma unroll
    for (int i = 0; i < U::step; ++i) {
      if (unit + i >= units) {
        break;
      }
      float scale[2] = {scales[0][i], scales[1][i]};
      float bias[2] = {biases[0][i], biases[1][i]};
      add_unit<T, Bits, Unit, Tiles>(
          words[i], x, inside, (unit + i) * Unit, scale, bias, sums);
    }
  }
  finish_qmv<T, Tiles>(p, first_line, first_row, sums);
}

}  // namespace mlx::core::cuda
