// Few rows of x times a quantized matrix whose rows are the depth.
//
// A block takes 256 columns, eight codes a lane: a row of w is 128 bytes at 4
// bits. Its eight warps take rows in turn, four in flight. Where columns are
// few the depth is cut into parts, which a second kernel adds.
#include <algorithm>
#include <optional>

#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/qmv.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kCols = 256;  // of a block
constexpr int kUnroll = 4;

template <typename T, typename S>
struct QvmParams {
  const uint32_t* codes;
  const S* scales;
  const S* biases;
  const T* x;
  T* out;
  float* partial;  // parts x rows x cols, or nullptr
  int64_t rows;
  int64_t cols;
  int64_t depth;
  int64_t part;  // depth of a part
  int64_t row_stride;
  int64_t col_stride;
  int bits;
  int octet_shift;  // octets in a group, as a power of two
};

/// Adds row k of w, eight columns, times x[:, k].
template <typename T, typename S, int Rows>
__device__ __forceinline__ void add_row(
    const QvmParams<T, S>& p,
    uint64_t codes,
    float scale,
    float bias,
    const float (&x)[Rows],
    float (&sums)[Rows][8]) {
  uint32_t mask = (1u << p.bits) - 1;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float code = code_value(static_cast<uint32_t>(codes) & mask);
    codes >>= p.bits;
    float number = fmaf(code, scale, bias);
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      sums[row][i] = fmaf(number, x[row], sums[row][i]);
    }
  }
}

template <typename T, typename S, int Rows>
__global__ void __launch_bounds__(kThreads) qvm(QvmParams<T, S> p) {
  __shared__ float shared[kWarps][kCols];
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int64_t first_col = int64_t(blockIdx.x) * kCols;
  int64_t first_row = int64_t(blockIdx.y) * Rows;
  int64_t octets = p.cols / 8;
  int64_t octet = first_col / 8 + lane;
  bool inside = octet < octets;
  int64_t groups = octets >> p.octet_shift;
  int64_t group = octet >> p.octet_shift;
  int64_t begin = blockIdx.z * p.part;
  int64_t end = min(begin + p.part, p.depth);
  float sums[Rows][8] = {};
  for (int64_t k = begin + warp; inside && k < end; k += kWarps * kUnroll) {
    uint64_t codes[kUnroll];
    float scale[kUnroll];
    float bias[kUnroll];
    float x[kUnroll][Rows];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      // Rows past the end are read as the last one and meet zeros.
      bool real = k + i * kWarps < end;
      int64_t at = real ? k + i * kWarps : end - 1;
      codes[i] = load_eight_codes(p.codes, at * octets + octet, p.bits);
      scale[i] = real ? to_compute(p.scales[at * groups + group]) : 0.0f;
      bias[i] = real ? to_compute(p.biases[at * groups + group]) : 0.0f;
#pragma unroll
      for (int row = 0; row < Rows; ++row) {
        int64_t from = min(first_row + row, p.rows - 1);
        x[i][row] =
            real ? to_compute(p.x[from * p.row_stride + at * p.col_stride])
                 : 0.0f;
      }
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      add_row<T, S, Rows>(p, codes[i], scale[i], bias[i], x[i], sums);
    }
  }
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      shared[warp][lane * 8 + i] = sums[row][i];
    }
    __syncthreads();
    int64_t col = first_col + threadIdx.x;
    int64_t at = (first_row + row) * p.cols + col;
    if (col < p.cols && first_row + row < p.rows) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < kWarps; ++i) {
        sum += shared[i][threadIdx.x];
      }
      if (p.partial != nullptr) {
        p.partial[blockIdx.z * p.rows * p.cols + at] = sum;
      } else {
        p.out[at] = convert<T>(sum);
      }
    }
    __syncthreads();
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_parts(const float* partial, int parts, int64_t size, T* out) {
  int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < size;
       i += step) {
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part) {
      sum += partial[part * size + i];
    }
    out[i] = convert<T>(sum);
  }
}

template <typename T, typename S>
void run_qvm(const QmmArgs& args, Encoder& e) {
  const QuantizedMatrix& w = args.w;
  int rows = args.rows == 1 ? 1 : 4;
  int64_t col_blocks = (w.cols + kCols - 1) / kCols;
  int64_t row_blocks = (args.rows + rows - 1) / rows;
  int64_t wanted =
      int64_t(device_facts().multiprocessors) * 6 / (col_blocks * row_blocks);
  int64_t most = w.rows / (2 * kWarps * kUnroll);
  int64_t parts = std::clamp<int64_t>(std::min(wanted, most), 1, 64);
  int64_t part = (w.rows + parts - 1) / parts;
  parts = (w.rows + part - 1) / part;
  std::optional<Scratch> partial;
  int64_t size = args.rows * w.cols;
  if (parts > 1) {
    partial.emplace(e.scratch(sizeof(float) * size_t(parts * size)));
  }
  QvmParams<T, S> p{
      .codes = w.codes,
      .scales = static_cast<const S*>(w.scales),
      .biases = static_cast<const S*>(w.biases),
      .x = static_cast<const T*>(args.x),
      .out = static_cast<T*>(args.out),
      .partial = partial ? partial->get<float>() : nullptr,
      .rows = args.rows,
      .cols = w.cols,
      .depth = w.rows,
      .part = part,
      .row_stride = args.row_stride,
      .col_stride = args.col_stride,
      .bits = w.bits,
      .octet_shift = w.group_shift(8)};
  dim3 grid(
      static_cast<unsigned>(col_blocks),
      static_cast<unsigned>(row_blocks),
      static_cast<unsigned>(parts));
  auto* kernel = rows == 1 ? qvm<T, S, 1> : qvm<T, S, 4>;
  e.launch(kernel, grid, kThreads, 0, p);
  if (partial) {
    e.launch(
        add_parts<T>,
        grid_for(static_cast<size_t>(size), kThreads),
        kThreads,
        0,
        p.partial,
        parts,
        size,
        p.out);
  }
}

}  // namespace

void qvm(const QmmArgs& args, Encoder& e) {
  bool wide = args.type == Dtype::Val::float32;
  if (args.w.type == Dtype::Val::float16) {
    wide ? run_qvm<float, half>(args, e) : run_qvm<half, half>(args, e);
  } else if (args.w.type == Dtype::Val::bfloat16) {
    wide ? run_qvm<float, bhalf>(args, e) : run_qvm<bhalf, bhalf>(args, e);
  } else {
    run_qvm<float, float>(args, e);
  }
}

}  // namespace mlx::core::cuda
