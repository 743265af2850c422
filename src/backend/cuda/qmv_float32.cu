// Few rows of float32 times a transposed quantized matrix, exact in float32.
//
// A block of up to four warps takes four lines of w (columns of the result) and
// one row of x, or up to four; its threads share the lines by octets of codes,
// all loads of an octet in flight together. Lanes
// read neighbouring octets: w comes from memory once, x from the L1 cache. The
// codes' products are scaled octet by octet, the bias meets the sum of x.
#include <algorithm>

#include "backend/cuda/device/octets.cuh"
#include "backend/cuda/device/overlap.cuh"
#include "backend/cuda/qmv.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

template <typename S>
struct QmvFloatParams {
  const uint32_t* codes;
  const S* scales;
  const S* biases;
  const float* x;
  float* out;
  int64_t lines;
  int64_t rows;
  int64_t depth;
  int64_t row_stride;
  int64_t col_stride;
  int bits;
  int octet_shift;  // octets in a group, as a power of two
  bool x_packed;
};

template <typename S>
__device__ __forceinline__ void load_x_octet(
    const QmvFloatParams<S>& p, int64_t row, int64_t octet, float (&x)[8]) {
  const float* from = p.x + row * p.row_stride;
  if (p.x_packed) {
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      Pack<float, 4> pack = load_pack<4>(from + octet * 8 + i);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        x[i + j] = pack[j];
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x[i] = from[(octet * 8 + i) * p.col_stride];
    }
  }
}

/// An octet of codes. Bits is 4 or 8, for codes aligned to octets, or 0 for the
/// width that p has, counted from the line.
template <int Bits>
__device__ __forceinline__ uint64_t
load_codes(const uint32_t* from, int octet, int bits) {
  if constexpr (Bits == 4) {
    return __ldg(from);
  } else if constexpr (Bits == 8) {
    return __ldg(reinterpret_cast<const unsigned long long*>(from));
  } else {
    return load_eight_codes(from, octet, bits);
  }
}

/// Sums over a warp of N numbers: number i comes out in lane i * (32 / N).
template <int N>
__device__ __forceinline__ float add_lanes(float (&numbers)[N]) {
  int lane = static_cast<int>(threadIdx.x % 32);
  int other = 16;
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
    bool upper = (lane & other) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      float give = upper ? numbers[i] : numbers[i + half];
      float keep = upper ? numbers[i + half] : numbers[i];
      numbers[i] = keep + __shfl_xor_sync(0xffffffffu, give, other);
    }
    other /= 2;
  }
#pragma unroll
  for (; other > 0; other /= 2) {
    numbers[0] += __shfl_xor_sync(0xffffffffu, numbers[0], other);
  }
  return numbers[0];
}

constexpr int kLines = 4;  // of a block

template <typename S, int Bits, int Rows>
__global__ void __launch_bounds__(kThreads, 4) qmv(QmvFloatParams<S> p) {
  constexpr int kSums = kLines * Rows;
  __shared__ float shared[kWarps][kSums];
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int64_t first_line = int64_t(blockIdx.x) * kLines;
  int64_t first_row = int64_t(blockIdx.y) * Rows;
  int octets = static_cast<int>(p.depth / 8);
  int groups = octets >> p.octet_shift;
  // Lines past the end are read as the last one and not written.
  auto last = static_cast<int>(min(p.lines - first_line, int64_t(kLines))) - 1;
  int pitch = octets / 4 * (Bits == 0 ? p.bits : Bits);
  auto number_bytes = static_cast<int>((last + 1) * groups * sizeof(S));
  ask_for(p.scales + first_line * groups, number_bytes);
  ask_for(p.biases + first_line * groups, number_bytes);
  if (Bits != 0 && threadIdx.x < octets) {
    const uint32_t* from =
        p.codes + first_line * pitch + threadIdx.x * Bits / 4;
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      ask_for(from);
      from += i < last ? pitch : 0;
    }
  }
  begin_after(p.codes, p.scales, p.biases, p.x);
  float sums[kLines][Rows] = {};
  for (int octet = threadIdx.x; octet < octets; octet += blockDim.x) {
    uint64_t codes[kLines];
    float scale[kLines];
    float bias[kLines];
    const uint32_t* from = p.codes + first_line * pitch + octet * Bits / 4;
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      codes[i] = load_codes<Bits>(from, octet, p.bits);
      from += i < last ? pitch : 0;
    }
    int64_t group = first_line * groups + (octet >> p.octet_shift);
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      scale[i] = to_compute(p.scales[group]);
      bias[i] = to_compute(p.biases[group]);
      group += i < last ? groups : 0;
    }
    float x[Rows][8];
    float x_sums[Rows] = {};
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      // Rows past the end are read as the last one and not written.
      load_x_octet(p, min(first_row + row, p.rows - 1), octet, x[row]);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        x_sums[row] += x[row][i];
      }
    }
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      add_octet<Bits, Rows>(
          codes[i], p.bits, x, x_sums, scale[i], bias[i], sums[i]);
    }
  }
  float all[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    all[i] = sums[i / Rows][i % Rows];
  }
  float sum = add_lanes(all);
  if (lane % (32 / kSums) == 0) {
    shared[warp][lane / (32 / kSums)] = sum;
  }
  __syncthreads();
  if (threadIdx.x < kSums) {
    int64_t line = first_line + threadIdx.x / Rows;
    int64_t row = first_row + threadIdx.x % Rows;
    if (line < p.lines && row < p.rows) {
      float total = 0.0f;
      for (int i = 0; i < static_cast<int>(blockDim.x / 32); ++i) {
        total += shared[i][threadIdx.x];
      }
      p.out[row * p.lines + line] = total;
    }
  }
}

template <typename S>
using QmvKernel = void (*)(QmvFloatParams<S>);

template <typename S, int Bits>
QmvKernel<S> choose_kernel(int rows) {
  return rows > 1 ? qmv<S, Bits, 4> : qmv<S, Bits, 1>;
}

template <typename S>
void run_qmv(const QmmArgs& args, Encoder& e) {
  const QuantizedMatrix& w = args.w;
  QmvFloatParams<S> p{
      .codes = w.codes,
      .scales = static_cast<const S*>(w.scales),
      .biases = static_cast<const S*>(w.biases),
      .x = static_cast<const float*>(args.x),
      .out = static_cast<float*>(args.out),
      .lines = w.rows,
      .rows = args.rows,
      .depth = w.cols,
      .row_stride = args.row_stride,
      .col_stride = args.col_stride,
      .bits = w.bits,
      .octet_shift = w.group_shift(8),
      .x_packed = args.col_stride == 1 &&
                  reinterpret_cast<uintptr_t>(args.x) % 16 == 0 &&
                  (args.rows == 1 || args.row_stride % 4 == 0)};
  bool aligned = reinterpret_cast<uintptr_t>(w.codes) % 8 == 0;
  int bits = w.bits == 4 || (w.bits == 8 && aligned) ? w.bits : 0;
  int rows = args.rows == 1 ? 1 : 4;
  int64_t warps = std::min<int64_t>(kWarps, (w.cols / 8 + 31) / 32);
  dim3 grid(
      static_cast<unsigned>((w.rows + kLines - 1) / kLines),
      static_cast<unsigned>((args.rows + rows - 1) / rows));
  QmvKernel<S> kernel = bits == 4   ? choose_kernel<S, 4>(rows)
                        : bits == 8 ? choose_kernel<S, 8>(rows)
                                    : choose_kernel<S, 0>(rows);
  e.launch_overlapped(kernel, grid, static_cast<unsigned>(warps * 32), 0, p);
}

}  // namespace

void qmv_float32(const QmmArgs& args, Encoder& e) {
  if (qmv_lines_takes(args)) {
    return qmv_lines(args, e);
  }
  if (args.w.type == Dtype::Val::float16) {
    run_qmv<half>(args, e);
  } else if (args.w.type == Dtype::Val::bfloat16) {
    run_qmv<bhalf>(args, e);
  } else {
    run_qmv<float>(args, e);
  }
}

}  // namespace mlx::core::cuda
