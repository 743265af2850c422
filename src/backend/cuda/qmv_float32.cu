// Few rows of float32 times a transposed quantized matrix, exact in float32.
//
// A block of four warps takes four lines of w (columns of the result) and one
// row of x, or up to four; its threads share the lines by octets of codes.
// Lanes read neighbouring octets: w comes from memory once, x from the L1
// cache. The codes' products are scaled octet by octet, the bias meets the sum
// of x.
#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/qmv.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kLines = 4;

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

/// The octet's products with rows of x, which are valid or zero.
template <int Bits, int Rows>
__device__ __forceinline__ void add_octet(
    uint64_t codes,
    int bits,
    const float (&x)[Rows][8],
    const float (&x_sums)[Rows],
    float scale,
    float bias,
    float (&sums)[Rows]) {
  float products[Rows] = {};
  uint32_t mask = (1u << bits) - 1;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    uint32_t code;
    if constexpr (Bits == 4) {
      code = (static_cast<uint32_t>(codes) >> (4 * i)) & 15u;
    } else {
      code = static_cast<uint32_t>(codes) & mask;
      codes >>= bits;
    }
    float value = code_value(code);
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      products[row] = fmaf(value, x[row][i], products[row]);
    }
  }
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
    float sum = fmaf(bias, x_sums[row], sums[row]);
    sums[row] = fmaf(scale, products[row], sum);
  }
}

/// Bits is 4, or 0 for the width that p has.
template <typename S, int Bits, int Rows>
__global__ void __launch_bounds__(kThreads) qmv(QmvFloatParams<S> p) {
  __shared__ float shared[kWarps][kLines][Rows];
  int bits = Bits == 0 ? p.bits : Bits;
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int64_t first_line = int64_t(blockIdx.x) * kLines;
  int64_t first_row = int64_t(blockIdx.y) * Rows;
  int64_t octets = p.depth / 8;
  int64_t groups = octets >> p.octet_shift;
  float sums[kLines][Rows] = {};
  for (int64_t octet = threadIdx.x; octet < octets; octet += kThreads) {
    uint64_t codes[kLines];
    float scale[kLines];
    float bias[kLines];
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      int64_t line = min(first_line + i, p.lines - 1);
      codes[i] = load_eight_codes(p.codes, line * octets + octet, bits);
      int64_t group = line * groups + (octet >> p.octet_shift);
      scale[i] = to_compute(p.scales[group]);
      bias[i] = to_compute(p.biases[group]);
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
          codes[i], bits, x, x_sums, scale[i], bias[i], sums[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kLines; ++i) {
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
#pragma unroll
      for (int other = 16; other > 0; other /= 2) {
        sums[i][row] += __shfl_xor_sync(0xffffffffu, sums[i][row], other);
      }
      if (lane == 0) {
        shared[warp][i][row] = sums[i][row];
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < kLines * Rows) {
    int64_t line = first_line + threadIdx.x % kLines;
    int64_t row = first_row + threadIdx.x / kLines;
    if (line < p.lines && row < p.rows) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < kWarps; ++i) {
        sum += shared[i][threadIdx.x % kLines][threadIdx.x / kLines];
      }
      p.out[row * p.lines + line] = sum;
    }
  }
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
      .octet_shift = 0,
      .x_packed = args.col_stride == 1 &&
                  reinterpret_cast<uintptr_t>(args.x) % 16 == 0 &&
                  (args.rows == 1 || args.row_stride % 4 == 0)};
  while ((8 << p.octet_shift) < w.group_size) {
    ++p.octet_shift;
  }
  bool one = args.rows == 1;
  int rows = one ? 1 : 4;
  dim3 grid(
      static_cast<unsigned>((w.rows + kLines - 1) / kLines),
      static_cast<unsigned>((args.rows + rows - 1) / rows));
  void (*kernel)(QmvFloatParams<S>);
  if (w.bits == 4) {
    kernel = one ? qmv<S, 4, 1> : qmv<S, 4, 4>;
  } else {
    kernel = one ? qmv<S, 0, 1> : qmv<S, 0, 4>;
  }
  e.launch(kernel, grid, kThreads, 0, p);
}

}  // namespace

void qmv_float32(const QmmArgs& args, Encoder& e) {
  if (args.w.type == Dtype::Val::float16) {
    run_qmv<half>(args, e);
  } else if (args.w.type == Dtype::Val::bfloat16) {
    run_qmv<bhalf>(args, e);
  } else {
    run_qmv<float>(args, e);
  }
}

}  // namespace mlx::core::cuda
