// Quantized matrices as two of a half type, for products as exact as float32's.
//
// A number of w is a high part and what it leaves over: 16 bits of mantissa in
// bfloat16, 22 in float16. Threads move 16 bytes at a time, neighbours whole
// sectors: eight codes become 16 bytes of both parts, in four independent
// steps.
#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/qmm_split.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kSteps = 4;

/// One store of 16 bytes, also where the compiler would make it four.
template <typename T>
__device__ __forceinline__ void store_eight(T* to, const Pack<T, 8>& numbers) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t low = reinterpret_cast<const uint16_t&>(numbers[2 * i]);
    uint32_t high = reinterpret_cast<const uint16_t&>(numbers[2 * i + 1]);
    words[i] = low | high << 16;
  }
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "r"(words[0]),
               "r"(words[1]),
               "r"(words[2]),
               "r"(words[3])
               : "memory");
}

template <typename T>
struct SplitParams {
  const uint32_t* codes;
  const T* scales;
  const T* biases;
  T* out;
  int64_t octets;
  int64_t pitch;      // from the high parts of four octets to the next
  int64_t remainder;  // from high parts to their low ones
  int octet_shift;    // octets in a group, as a power of two
  int bits;
};

template <typename T>
__device__ __forceinline__ void store_split(
    const SplitParams<T>& p,
    int64_t octet,
    uint64_t codes,
    float scale,
    float bias) {
  uint32_t mask = (1u << p.bits) - 1;
  Pack<T, 8> high;
  Pack<T, 8> low;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float code = code_value(static_cast<uint32_t>(codes) & mask);
    codes >>= p.bits;
    float number = fmaf(code, scale, bias);
    high[i] = convert<T>(number);
    float rest = number - to_compute(high[i]);
    // Nothing is left over of infinity.
    low[i] = convert<T>(isfinite(rest) ? rest : 0.0f);
  }
  T* to = p.out + octet / 4 * p.pitch + octet % 4 * 8;
  store_eight(to, high);
  store_eight(to + p.remainder, low);
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 3)
    dequantize_split(SplitParams<T> p) {
  int64_t step = int64_t(gridDim.x) * kThreads * kSteps;
  for (int64_t first = int64_t(blockIdx.x) * kThreads * kSteps + threadIdx.x;
       first < p.octets;
       first += step) {
    uint64_t codes[kSteps];
    T scale[kSteps];
    T bias[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      // Past the end the last one is read: no branch parts the loads.
      int64_t octet = min(first + i * kThreads, p.octets - 1);
      codes[i] = load_eight_codes(p.codes, octet, p.bits);
      scale[i] = p.scales[octet >> p.octet_shift];
      bias[i] = p.biases[octet >> p.octet_shift];
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      int64_t octet = first + i * kThreads;
      if (octet < p.octets) {
        store_split(
            p, octet, codes[i], to_compute(scale[i]), to_compute(bias[i]));
      }
    }
  }
}

template <typename T>
struct RepeatParams {
  const T* x;
  T* out;
  int64_t depth;
  int64_t row_stride;
  int64_t col_stride;
  int64_t repeat;  // from a number to its repetition
  bool packed;
};

/// A block takes a row, N numbers a thread: octets, of which four are followed
/// by their repetition, or single numbers. Remainders meet zero where x is
/// infinite: they are nothing beside the number itself.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) repeat_row(RepeatParams<T> p) {
  const T* from = p.x + int64_t(blockIdx.x) * p.row_stride;
  T* to = p.out + int64_t(blockIdx.x) * (2 * p.depth);
  for (int64_t run = threadIdx.x; run < p.depth / N; run += kThreads) {
    Pack<T, N> x;
    if (p.packed) {
      x = load_pack<N>(from + run * N);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        x[i] = from[(run * N + i) * p.col_stride];
      }
    }
    Pack<T, N> again;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      again[i] = isinf(to_compute(x[i])) ? convert<T>(0.0f) : x[i];
    }
    int64_t at = N == 8 ? run / 4 * 64 + run % 4 * 8 : run;
    if constexpr (N == 8) {
      store_eight(to + at, x);
      store_eight(to + at + p.repeat, again);
    } else {
      store_pack(to + at, x);
      store_pack(to + at + p.repeat, again);
    }
  }
}

template <typename T>
void run_dequantize(
    const QuantizedMatrix& w, bool transpose, void* out, Encoder& e) {
  SplitParams<T> p{
      .codes = w.codes,
      .scales = static_cast<const T*>(w.scales),
      .biases = static_cast<const T*>(w.biases),
      .out = static_cast<T*>(out),
      .octets = w.rows * w.cols / 8,
      .pitch = transpose ? 64 : 32,
      .remainder = transpose ? 32 : w.rows * w.cols,
      .octet_shift = w.group_shift(8),
      .bits = w.bits};
  auto items = static_cast<size_t>((p.octets + kSteps - 1) / kSteps);
  e.launch(dequantize_split<T>, grid_for(items, kThreads), kThreads, 0, p);
}

template <typename T>
void run_repeat(const QmmArgs& args, void* out, Encoder& e) {
  RepeatParams<T> p{
      .x = static_cast<const T*>(args.x),
      .out = static_cast<T*>(out),
      .depth = args.depth(),
      .row_stride = args.row_stride,
      .col_stride = args.col_stride,
      .repeat = args.transpose ? 32 : args.depth(),
      .packed = args.transpose && args.col_stride == 1 &&
                reinterpret_cast<uintptr_t>(args.x) % 16 == 0 &&
                (args.rows == 1 || args.row_stride % 8 == 0)};
  auto* kernel = args.transpose ? repeat_row<T, 8> : repeat_row<T, 1>;
  e.launch(kernel, static_cast<unsigned>(args.rows), kThreads, 0, p);
}

}  // namespace

void dequantize_split(
    const QuantizedMatrix& w, bool transpose, void* out, Encoder& e) {
  if (w.type == Dtype::Val::float16) {
    run_dequantize<half>(w, transpose, out, e);
  } else {
    run_dequantize<bhalf>(w, transpose, out, e);
  }
}

void repeat_for_split(const QmmArgs& args, void* out, Encoder& e) {
  if (args.type == Dtype::Val::float16) {
    run_repeat<half>(args, out, e);
  } else {
    run_repeat<bhalf>(args, out, e);
  }
}

}  // namespace mlx::core::cuda
