// One row of float32 times a transposed quantized matrix of many lines, exact
// in float32. Limit: bytes of the matrix over bandwidth.
//
// A line is read by as many neighbouring threads as divide its pieces of 32
// codes with little left over; a thread has all codes of a piece, so that their
// scale and bias, whose loads would else outnumber those of the codes, are read
// once. x is in shared memory, pieces 36 numbers apart: neighbours read other
// banks, or the same number.
#include <algorithm>

#include "backend/cuda/device/octets.cuh"
#include "backend/cuda/device/overlap.cuh"
#include "backend/cuda/qmv.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kPiece = 32;    // codes
constexpr int kInFlight = 3;  // pieces of a thread
constexpr int kPitch = kPiece + 4;
constexpr int64_t kMostDepth = 8192;

template <typename S>
struct QmvLinesParams {
  const uint4* codes;
  const S* scales;
  const S* biases;
  const float4* x;
  float* out;
  int64_t lines;
  int pieces;
  int threads_of_line;  // a power of two, up to 32
  int piece_shift;      // pieces in a group, as a power of two
};

template <typename S, int Bits>
struct LinePiece {
  static constexpr int packs = Bits * kPiece / 128;
  uint32_t codes[4 * packs];
  S scale;
  S bias;

  __device__ __forceinline__ void load(
      const QmvLinesParams<S>& p, int64_t line, int piece) {
    const uint4* from = p.codes + (line * p.pieces + piece) * packs;
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      uint4 four = __ldg(from + i);
      codes[4 * i] = four.x;
      codes[4 * i + 1] = four.y;
      codes[4 * i + 2] = four.z;
      codes[4 * i + 3] = four.w;
    }
    int64_t group =
        line * (p.pieces >> p.piece_shift) + (piece >> p.piece_shift);
    scale = p.scales[group];
    bias = p.biases[group];
  }

  /// The products with the piece of x, whose sum is behind it.
  __device__ __forceinline__ float times(const float* x) const {
    constexpr int kOctets = kPiece / 8;
    float product = 0.0f;
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      uint64_t eight = codes[octet * (Bits / 4)];
      if constexpr (Bits == 8) {
        eight |= uint64_t(codes[octet * 2 + 1]) << 32;
      }
      float values[8];
      unpack_octet<Bits>(eight, Bits, values);
#pragma unroll
      for (int i = 0; i < 8; i += 4) {
        float4 four = *reinterpret_cast<const float4*>(x + octet * 8 + i);
        product = fmaf(values[i], four.x, product);
        product = fmaf(values[i + 1], four.y, product);
        product = fmaf(values[i + 2], four.z, product);
        product = fmaf(values[i + 3], four.w, product);
      }
    }
    float by = to_compute(scale);
    float shift = fmaf(-offset_v<Bits>, by, to_compute(bias));
    return fmaf(by, product, shift * x[kPiece]);
  }
};

template <typename S>
__device__ __forceinline__ void bring_x(
    const QmvLinesParams<S>& p, float* shared) {
  constexpr int kFours = kPiece / 4;
  for (auto i = static_cast<int>(threadIdx.x); i < p.pieces * kFours;
       i += kThreads) {
    float4 four = p.x[i];
    *reinterpret_cast<float4*>(shared + i / kFours * kPitch + i % kFours * 4) =
        four;
    // Eight neighbours have a piece; x has whole ones, so all eight are here.
    float sum = (four.x + four.y) + (four.z + four.w);
    unsigned eight = 0xffu << (threadIdx.x % 32 / kFours * kFours);
#pragma unroll
    for (int other = kFours / 2; other > 0; other /= 2) {
      sum += __shfl_xor_sync(eight, sum, other);
    }
    if (i % kFours == 0) {
      shared[i / kFours * kPitch + kPiece] = sum;
    }
  }
  __syncthreads();
}

template <typename S, int Bits>
__global__ void __launch_bounds__(kThreads, 4) qmv_lines(QmvLinesParams<S> p) {
  extern __shared__ float x[];
  auto thread = static_cast<int>(threadIdx.x);
  int lane = thread % p.threads_of_line;
  int64_t line = int64_t(blockIdx.x) * (kThreads / p.threads_of_line) +
                 thread / p.threads_of_line;
  // Lines past the end are read as the last one and not written.
  int64_t from = min(line, p.lines - 1);
  begin_after(p.codes, p.scales, p.biases, p.x);
  LinePiece<S, Bits> some[kInFlight];
  auto load = [&](int first) {
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      int piece = first + u * p.threads_of_line;
      some[u].load(p, from, min(piece, p.pieces - 1));
    }
  };
  load(lane);
  bring_x(p, x);
  float sum = 0.0f;
  int step = kInFlight * p.threads_of_line;
  for (int first = lane; first < p.pieces; first += step) {
    if (first != lane) {
      load(first);
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      int piece = first + u * p.threads_of_line;
      if (piece < p.pieces) {
        sum += some[u].times(x + piece * kPitch);
      }
    }
  }
  for (int other = p.threads_of_line / 2; other > 0; other /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, other);
  }
  if (lane == 0 && line < p.lines) {
    p.out[line] = sum;
  }
}

/// The most threads, for their reads lie together, of which few are idle at a
/// line's end: an eighth at most, or as few as can be.
int choose_threads(int pieces) {
  int best = 1;
  int best_idle = 0;
  for (int threads = 32; threads > 1; threads /= 2) {
    int idle = (pieces + threads - 1) / threads * threads - pieces;
    if (8 * idle <= pieces) {
      return threads;
    }
    if (best == 1 || idle < best_idle) {
      best = threads;
      best_idle = idle;
    }
  }
  return best;
}

template <typename S>
void run_lines(const QmmArgs& args, Encoder& e) {
  const QuantizedMatrix& w = args.w;
  QmvLinesParams<S> p{
      .codes = reinterpret_cast<const uint4*>(w.codes),
      .scales = static_cast<const S*>(w.scales),
      .biases = static_cast<const S*>(w.biases),
      .x = static_cast<const float4*>(args.x),
      .out = static_cast<float*>(args.out),
      .lines = w.rows,
      .pieces = static_cast<int>(w.cols / kPiece),
      .threads_of_line = choose_threads(static_cast<int>(w.cols / kPiece)),
      .piece_shift = w.group_shift(kPiece)};
  int lines_of_block = kThreads / p.threads_of_line;
  auto blocks =
      static_cast<unsigned>((w.rows + lines_of_block - 1) / lines_of_block);
  size_t shared = size_t(p.pieces) * kPitch * sizeof(float);
  auto kernel = w.bits == 4 ? qmv_lines<S, 4> : qmv_lines<S, 8>;
  e.launch_overlapped(kernel, blocks, kThreads, shared, p);
}

}  // namespace

bool qmv_lines_takes(const QmmArgs& args) {
  const QuantizedMatrix& w = args.w;
  auto addresses = reinterpret_cast<uintptr_t>(args.x) |
                   reinterpret_cast<uintptr_t>(w.codes);
  return args.rows == 1 && args.col_stride == 1 && addresses % 16 == 0 &&
         (w.bits == 4 || w.bits == 8) && w.group_size % kPiece == 0 &&
         w.cols <= kMostDepth &&
         w.rows >= int64_t(device_facts().multiprocessors) * 32;
}

void qmv_lines(const QmmArgs& args, Encoder& e) {
  if (args.w.type == Dtype::Val::float16) {
    run_lines<half>(args, e);
  } else if (args.w.type == Dtype::Val::bfloat16) {
    run_lines<bhalf>(args, e);
  } else {
    run_lines<float>(args, e);
  }
}

}  // namespace mlx::core::cuda
