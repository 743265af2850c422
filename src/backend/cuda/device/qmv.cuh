// Few rows times a transposed quantized matrix by tensor cores, half types.
//
// A block takes 16 lines of w (columns of the result) and up to 8, 16 or 32
// rows of x; its warps share the groups of those lines. The codes themselves
// are one operand, exact in a half type; what they sum up to with x is scaled
// group by group in float32. The sum of x over the group, which the bias wants,
// comes from a product with ones.
// Lane l reads a quarter (l%4) of a group of lines l/4 and l/4 + 8, so w is
// read once and in whole sectors; 64 to 128 bytes of a lane are always on their
// way, by asynchronous copies to its own place in shared memory. A product adds
// over k in any order, so lanes take codes as they lie in a word, and x is
// taken in the same order from the L1 cache.
#pragma once

#include "backend/cuda/device/async.cuh"
#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/device/mma.cuh"

namespace mlx::core::cuda {

constexpr int kQmvLines = 16;
constexpr int kQmvStages = 2;

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
};

/// How a lane reads groups of one line, a few at a time.
template <int Bits, int Group>
struct QmvStep {
  static constexpr int octets = Group / 32;  // of a lane and group
  static constexpr bool whole_words = Bits == 4 || Bits == 8;
  static constexpr int words = octets * (Bits == 4 ? 1 : 2);
  /// Groups of a step: 64 bytes of a lane, of two lines.
  static constexpr int groups = words < 8 ? 8 / words : 1;
  /// Words of one copy, and copies of a group.
  static constexpr int copy_words = !whole_words ? 1 : words < 4 ? words : 4;
  static constexpr int copies = words / copy_words;
  /// Words of a warp in shared memory for one step: codes of a group and both
  /// lines, then the lane's scale or bias.
  static constexpr int group_size = (2 * words + 1) * 32;
  static constexpr int size = groups * group_size;
};

/// Begins to copy the lane's codes of one group and line.
template <int Bits, int Group>
__device__ __forceinline__ void copy_group(
    const uint32_t* line, int group, uint32_t to) {
  using S = QmvStep<Bits, Group>;
  int lane = threadIdx.x % 32;
  int place = group * 4 + lane % 4;
#pragma unroll
  for (int i = 0; i < S::copies; ++i) {
    const uint32_t* from;
    if constexpr (S::whole_words) {
      from = line + int64_t(place) * S::words + i * S::copy_words;
    } else {
      // Two words for eight codes; the second where they reach into it.
      int64_t quarters = (int64_t(place) * S::octets + i / 2) * Bits;
      from = line + (quarters >> 2);
      if (i % 2 == 1) {
        from += (quarters & 3) * 8 + 8 * Bits > 32;
      }
    }
    constexpr int kBytes = S::copy_words * 4;
    copy_async<kBytes>(to + lane * kBytes + i * 32 * kBytes, from);
  }
}

/// Eight codes of the lane as four pairs.
template <typename T, int Bits, int Group>
__device__ __forceinline__ void unpack_octet(
    const uint32_t* from, int group, int octet, uint32_t (&pairs)[4]) {
  using S = QmvStep<Bits, Group>;
  int lane = threadIdx.x % 32;
  auto word = [&](int i) {
    return from
        [(i / S::copy_words * 32 + lane) * S::copy_words + i % S::copy_words];
  };
  if constexpr (Bits == 4) {
    unpack_pairs<T, Bits>(word(octet), 0, pairs);
  } else if constexpr (Bits == 8) {
    unpack_pairs<T, Bits>(word(2 * octet), word(2 * octet + 1), pairs);
  } else {
    int quarters = ((group * 4 + lane % 4) * S::octets + octet) * Bits;
    uint64_t codes =
        static_cast<uint64_t>(word(2 * octet + 1)) << 32 | word(2 * octet);
    codes >>= (quarters & 3) * 8;
    unpack_pairs<T, Bits>(
        static_cast<uint32_t>(codes),
        static_cast<uint32_t>(codes >> 32),
        pairs);
  }
}

/// Adds one group of 16 lines times 8 * Tiles rows to the sums.
template <typename T, int Bits, int Group, int Tiles>
__device__ __forceinline__ void add_group(
    const uint32_t* codes,
    const T* const (&x)[Tiles],
    int group,
    const float (&scale)[2],
    const float (&bias)[2],
    float (&sums)[Tiles][4]) {
  using S = QmvStep<Bits, Group>;
  constexpr uint32_t kOnes =
      std::is_same_v<T, half> ? 0x3c003c00u : 0x3f803f80u;
  float products[Tiles][4] = {};
  float x_sums[Tiles][4] = {};
#pragma unroll
  for (int octet = 0; octet < S::octets; ++octet) {
    uint32_t top[4];
    uint32_t bottom[4];
    unpack_octet<T, Bits, Group>(codes, group, octet, top);
    unpack_octet<T, Bits, Group>(codes + S::words * 32, group, octet, bottom);
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      uint32_t by[4];
      const T* from = x[tile] + group * Group + octet * 8;
      order_pairs<Bits>(__ldg(reinterpret_cast<const uint4*>(from)), by);
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
  constexpr float kOffset = pair_offset_v<T, Bits>;
  float shift[2] = {
      fmaf(-kOffset, scale[0], bias[0]), fmaf(-kOffset, scale[1], bias[1])};
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float sum = fmaf(shift[i / 2], x_sums[tile][i % 2], sums[tile][i]);
      sums[tile][i] = fmaf(scale[i / 2], products[tile][i], sum);
    }
  }
}

/// Adds the warps' sums and writes the results.
template <typename T, int Tiles>
__device__ __forceinline__ void finish_qmv(
    const QmvParams<T>& p,
    int64_t first_line,
    int64_t first_row,
    const float (&sums)[Tiles][4],
    float* shared) {
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

/// Where a lane reads.
template <typename T, int Tiles>
struct QmvPlace {
  const uint32_t* codes[2];
  /// Scales or biases of one of the two lines, by the quarter: a lane reads
  /// those for the four that share its lines. Words, the first of which begins
  /// with another line's number when `skip` is 1.
  const uint32_t* numbers;
  int skip;
  const T* x[Tiles];

  __device__ __forceinline__
  QmvPlace(const QmvParams<T>& p, int bits, int group, int groups) {
    int lane = threadIdx.x % 32;
    int quarter = lane % 4;
    int64_t words = p.depth / 32 * bits;
    int64_t lines[2];
    // Past the end the last line or row is read, and not written.
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int64_t line = int64_t(blockIdx.x) * kQmvLines + lane / 4 + 8 * i;
      lines[i] = min(line, p.lines - 1);
      codes[i] = p.codes + lines[i] * words;
    }
    const T* base = quarter < 2 ? p.scales : p.biases;
    auto first = reinterpret_cast<uintptr_t>(
        base + (quarter % 2 == 0 ? lines[0] : lines[1]) * groups);
    skip = static_cast<int>(first / 2 % 2);
    numbers = reinterpret_cast<const uint32_t*>(first - 2 * skip);
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      int64_t row = int64_t(blockIdx.y) * (8 * Tiles) + tile * 8 + lane / 4;
      x[tile] = p.x + min(row, p.rows - 1) * p.depth + quarter * (group / 4);
    }
  }

  /// The word with the number of group `first + i`, and the half of it; `first`
  /// is a multiple of Step, which leaves little to compute.
  template <int Step>
  __device__ __forceinline__ const uint32_t* word(int first, int i) const {
    if constexpr (Step % 2 == 0) {
      return numbers + first / 2 + i / 2 + (i % 2 == 0 ? 0 : skip);
    } else {
      return numbers + (first + i + skip) / 2;
    }
  }
  template <int Step>
  __device__ __forceinline__ int half_of(int first, int i) const {
    if constexpr (Step % 2 == 0) {
      return i % 2 == 0 ? skip : 1 - skip;
    } else {
      return (first + i + skip) % 2;
    }
  }
};

/// Begins to copy a lane's part of the groups of a step.
template <typename T, int Bits, int Group, int Tiles>
__device__ __forceinline__ void begin_step(
    const QmvPlace<T, Tiles>& place, int first, int groups, uint32_t to) {
  using S = QmvStep<Bits, Group>;
  constexpr int kBytes = S::words * 128;
#pragma unroll
  for (int i = 0; i < S::groups; ++i) {
    if (first + i < groups) {
      uint32_t at = to + i * S::group_size * 4;
      copy_group<Bits, Group>(place.codes[0], first + i, at);
      copy_group<Bits, Group>(place.codes[1], first + i, at + kBytes);
      copy_async<4>(
          at + 2 * kBytes + threadIdx.x % 32 * 4,
          place.template word<S::groups>(first, i));
    }
  }
  end_copies();
}

/// Adds a group whose copies are there.
template <typename T, int Bits, int Group, int Tiles>
__device__ __forceinline__ void finish_group(
    const QmvPlace<T, Tiles>& place,
    int first,
    int i,
    const uint32_t* from,
    float (&sums)[Tiles][4]) {
  constexpr int kWords = QmvStep<Bits, Group>::words * 32;
  uint32_t word = from[2 * kWords + threadIdx.x % 32];
  int half_of = place.template half_of<QmvStep<Bits, Group>::groups>(first, i);
  auto bits = static_cast<uint16_t>(word >> (half_of * 16));
  float number = to_compute(reinterpret_cast<const T&>(bits));
  float all[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    all[j] = __shfl_sync(0xffffffffu, number, j, 4);
  }
  float scale[2] = {all[0], all[1]};
  float bias[2] = {all[2], all[3]};
  add_group<T, Bits, Group, Tiles>(from, place.x, first + i, scale, bias, sums);
}

template <typename T, int Bits, int Group, int Tiles>
__global__ void __maxnreg__(Tiles == 1 ? 64 : 128) qmv(QmvParams<T> p) {
  using S = QmvStep<Bits, Group>;
  extern __shared__ __align__(16) uint32_t shared[];  // warps x stages x step
  int warp = threadIdx.x / 32;
  int stride = blockDim.x / 32 * S::groups;
  int groups = static_cast<int>(p.depth / Group);
  QmvPlace<T, Tiles> place(p, Bits, Group, groups);
  uint32_t* buffer = shared + warp * kQmvStages * S::size;
  float sums[Tiles][4] = {};
  int stage = 0;
  int first = warp * S::groups;
  uint32_t to = shared_address(buffer);
  begin_step<T, Bits, Group>(place, first, groups, to);
  for (; first < groups; first += stride) {
    begin_step<T, Bits, Group>(
        place, first + stride, groups, to + (stage ^ 1) * S::size * 4);
    wait_for_copies<1>();
    const uint32_t* from = buffer + stage * S::size;
#pragma unroll
    for (int i = 0; i < S::groups; ++i) {
      if (first + i < groups) {
        finish_group<T, Bits, Group>(
            place, first, i, from + i * S::group_size, sums);
      }
    }
    stage ^= 1;
  }
  __syncthreads();
  finish_qmv<T, Tiles>(
      p,
      int64_t(blockIdx.x) * kQmvLines,
      int64_t(blockIdx.y) * (8 * Tiles),
      sums,
      reinterpret_cast<float*>(shared));
}

}  // namespace mlx::core::cuda
