// The entry of a list that multiplies a row with the transpose of a quantized
// matrix. A warp takes a line; neighbouring lines go to different blocks, so
// that few lines use all multiprocessors too. Lanes read neighbouring octets of
// codes, four of them in flight; a matrix this small is all latency. Codes come
// to the L2 cache while the blocks wait for x, which each then holds in shared
// memory.
#pragma once

#include "backend/cuda/batch.h"
#include "backend/cuda/device/batch_numbers.cuh"
#include "backend/cuda/device/features.cuh"
#include "backend/cuda/device/octets.cuh"

namespace mlx::core::cuda {

constexpr int kRowOctets = 4;  // in flight for a lane

/// Lines place, place + step, ... are the warp's.
struct WarpLines {
  int first;
  int step;

  __device__ __forceinline__ explicit WarpLines(const BatchEntry& entry) {
    auto blocks = static_cast<int>(gridDim.x);
    int block = static_cast<int>(blockIdx.x) - entry.first;
    block += block < 0 ? blocks : 0;
    first = block + blocks * static_cast<int>(threadIdx.x / 32);
    step = blocks * static_cast<int>(blockDim.x / 32);
  }
};

/// x in float32. The two quarters of an octet lie apart, so that lanes read
/// neighbouring ones.
struct RowInShared {
  float4 quarters[2][kBatchDepth / 8];
  float sums[kBatchDepth / 8];
};

/// The block's own. A reference that is passed on would lose where it points.
__device__ __forceinline__ RowInShared& row_in_shared() {
  __shared__ RowInShared row;
  return row;
}

template <typename T>
__device__ __forceinline__ void bring_row(
    const BatchEntry::QuantizedRow& q, RowInShared& row) {
  auto* x = static_cast<const T*>(q.x);
#pragma unroll 1
  for (auto octet = static_cast<int>(threadIdx.x); octet < q.depth / 8;
       octet += static_cast<int>(blockDim.x)) {
    Features<T> found;
    found.template load<true>(x + octet * 8, 8);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sum += found[i];
    }
    row.quarters[0][octet] = {found[0], found[1], found[2], found[3]};
    row.quarters[1][octet] = {found[4], found[5], found[6], found[7]};
    row.sums[octet] = sum;
  }
}

template <int Bits>
__device__ __forceinline__ uint64_t
octet_of_line(const uint32_t* line, int octet, int bits) {
  if constexpr (Bits == 4) {
    return line[octet];
  } else if constexpr (Bits == 8) {
    return reinterpret_cast<const uint64_t*>(line)[octet];
  } else {
    return load_eight_codes(line, octet, bits);
  }
}

/// A lane's octets of a line on their way, from octet `first` on.
template <typename S, int Bits>
struct OctetsOfLine {
  uint64_t codes[kRowOctets];
  S scales[kRowOctets];
  S biases[kRowOctets];

  __device__ __forceinline__ void load(
      const BatchEntry::QuantizedRow& q, int lines, int line, int first) {
    int bits = Bits == 0 ? q.bits : Bits;
    int octets = line < lines ? q.depth / 8 : 0;
    int64_t pitch = octets / 4 * bits;
    int64_t group = int64_t(line) * (octets >> q.octet_shift);
    const uint32_t* from = q.codes + line * pitch;
#pragma unroll
    for (int i = 0; i < kRowOctets; ++i) {
      int octet = first + 32 * i;
      if (octet < octets) {
        int64_t at = group + (octet >> q.octet_shift);
        codes[i] = octet_of_line<Bits>(from, octet, bits);
        scales[i] = static_cast<const S*>(q.scales)[at];
        biases[i] = static_cast<const S*>(q.biases)[at];
      }
    }
  }

  __device__ __forceinline__ void add(
      const BatchEntry::QuantizedRow& q,
      const RowInShared& row,
      int first,
      float (&sum)[1]) const {
#pragma unroll
    for (int i = 0; i < kRowOctets; ++i) {
      int octet = first + 32 * i;
      if (octet < q.depth / 8) {
        float4 a = row.quarters[0][octet];
        float4 b = row.quarters[1][octet];
        float numbers[1][8] = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
        float numbers_sum[1] = {row.sums[octet]};
        add_octet<Bits, 1>(
            codes[i],
            q.bits,
            numbers,
            numbers_sum,
            to_compute(scales[i]),
            to_compute(biases[i]),
            sum);
      }
    }
  }
};

// Not inlined: ptxas would keep what all variants compute in registers.
template <typename S, int Bits>
__device__ __noinline__ void do_lines(const BatchEntry& entry) {
  const BatchEntry::QuantizedRow q = entry.quantized_row;
  RowInShared& row = row_in_shared();
  auto lines = static_cast<int>(entry.size);
  auto lane = static_cast<int>(threadIdx.x % 32);
  auto type = static_cast<Dtype::Val>(entry.types[0]);
  WarpLines mine(entry);
  // The matrix is asked for before x.
  OctetsOfLine<S, Bits> octets;
  octets.load(q, lines, mine.first, lane);
  if (type == Dtype::Val::float16) {
    bring_row<half>(q, row);
  } else if (type == Dtype::Val::bfloat16) {
    bring_row<bhalf>(q, row);
  } else {
    bring_row<float>(q, row);
  }
  __syncthreads();
  constexpr int kStep = 32 * kRowOctets;
#pragma unroll 1
  for (int line = mine.first; line < lines; line += mine.step) {
    float sum[1] = {};
#pragma unroll 1
    for (int first = 0; first < q.depth / 8; first += kStep) {
      octets.add(q, row, first + lane, sum);
      bool is_last = first + kStep >= q.depth / 8;
      octets.load(
          q,
          lines,
          is_last ? line + mine.step : line,
          lane + (is_last ? 0 : first + kStep));
    }
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
      sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], other);
    }
    if (lane == 0) {
      store_float(q.to, static_cast<uint32_t>(line), entry.types[0], sum[0]);
    }
  }
}

template <typename S>
__device__ __forceinline__ void do_lines_of(const BatchEntry& entry) {
  const BatchEntry::QuantizedRow& q = entry.quantized_row;
  if (q.bits == 4) {
    do_lines<S, 4>(entry);
  } else if (q.bits == 8) {
    do_lines<S, 8>(entry);
  } else {
    do_lines<S, 0>(entry);
  }
}

__device__ __forceinline__ void do_quantized_row(const BatchEntry& entry) {
  auto scales = static_cast<Dtype::Val>(entry.types[1]);
  if (scales == Dtype::Val::float16) {
    do_lines_of<half>(entry);
  } else if (scales == Dtype::Val::bfloat16) {
    do_lines_of<bhalf>(entry);
  } else {
    do_lines_of<float>(entry);
  }
}

/// Asks for the block's share of the matrix. One warp calls it, a lane takes a
/// line: the others are free to wait.
__device__ __forceinline__ void prefetch_lines(const BatchEntry& entry) {
  const BatchEntry::QuantizedRow q = entry.quantized_row;
  auto lines = static_cast<int>(entry.size);
  auto blocks = static_cast<int>(gridDim.x);
  auto type = static_cast<Dtype::Val>(entry.types[1]);
  uint32_t scale_size = type == Dtype::Val::float32 ? 4 : 2;
  auto octets = static_cast<uint32_t>(q.depth / 8);
  uint32_t line_bytes = octets * q.bits;
  uint32_t scale_bytes = (octets >> q.octet_shift) * scale_size;
  int block = static_cast<int>(blockIdx.x) - entry.first;
  block += block < 0 ? blocks : 0;
#pragma unroll 1
  for (int line = block + blocks * static_cast<int>(threadIdx.x % 32);
       line < lines;
       line += 32 * blocks) {
    auto at = static_cast<uint64_t>(line);
    prefetch_bytes(q.codes, at * line_bytes, line_bytes);
    prefetch_bytes(q.scales, at * scale_bytes, scale_bytes);
    prefetch_bytes(q.biases, at * scale_bytes, scale_bytes);
  }
}

}  // namespace mlx::core::cuda
