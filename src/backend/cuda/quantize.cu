// Quantizing groups, and the numbers that packed codes stand for.
//
// quantize: a thread takes 32 numbers, which are whole words of codes at every
// width; the 1, 2 or 4 threads of a group find its extremes together.
// dequantize: a thread takes eight codes at a time, 16 bytes of a half type, in
// four independent steps.
#include "backend/cuda/copy.h"
#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/quantized.h"
#include "backend/cuda/quantized_matrix.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kSegment = 32;  // numbers of a thread that quantizes
constexpr int kSteps = 4;     // of a thread that dequantizes

/// NaN if one of them is.
__device__ __forceinline__ float lower(float a, float b) {
  return a < b || a != a ? a : b;
}
__device__ __forceinline__ float higher(float a, float b) {
  return a > b || a != a ? a : b;
}

struct AffineGroup {
  float scale;
  float bias;
};

/// The rule: the scale spreads the codes from the extreme farther from zero
/// (the edge) to the other one, then is bent so that zero has a code.
__device__ __forceinline__ AffineGroup
affine_rule(float lowest, float highest, float top) {
  float scale = (highest - lowest) / top;
  if (scale < 1e-7f) {
    scale = 1e-7f;
  }
  bool from_lowest = fabsf(lowest) > fabsf(highest);
  float edge = from_lowest ? lowest : highest;
  scale = from_lowest ? scale : -scale;
  float code = rintf(edge / scale);
  if (code == 0.0f) {
    return {scale, 0.0f};
  }
  return {edge / code, edge};
}

template <typename T>
__device__ __forceinline__ void load_segment(
    const T* from, bool packed, float (&numbers)[kSegment]) {
  constexpr int V = pack_size_v<T>;
  if (packed) {
#pragma unroll
    for (int i = 0; i < kSegment; i += V) {
      Pack<T, V> pack = load_pack<V>(from + i);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        numbers[i + j] = convert<float>(pack[j]);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      numbers[i] = convert<float>(from[i]);
    }
  }
}

__device__ __forceinline__ void pack_codes(
    const float (&numbers)[kSegment],
    AffineGroup group,
    float top,
    int bits,
    uint32_t* to) {
  uint64_t buffer = 0;
  int filled = 0;
#pragma unroll
  for (int i = 0; i < kSegment; ++i) {
    float code = rintf((numbers[i] - group.bias) / group.scale);
    code = fminf(fmaxf(code, 0.0f), top);  // NaN becomes 0
    buffer |= static_cast<uint64_t>(static_cast<uint32_t>(code)) << filled;
    filled += bits;
    if (filled >= 32) {
      *to++ = static_cast<uint32_t>(buffer);
      buffer >>= 32;
      filled -= 32;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) quantize_groups(
    const T* w,
    int64_t segments,
    int per_group,
    int bits,
    bool packed,
    uint32_t* codes,
    T* scales,
    T* biases) {
  auto top = static_cast<float>((1 << bits) - 1);
  int64_t step = int64_t(gridDim.x) * kThreads;
  // Whole warps stay together: they exchange extremes.
  for (int64_t first = int64_t(blockIdx.x) * kThreads; first < segments;
       first += step) {
    int64_t segment = first + threadIdx.x;
    bool inside = segment < segments;
    float numbers[kSegment] = {};
    if (inside) {
      load_segment(w + segment * kSegment, packed, numbers);
    }
    float lowest = numbers[0];
    float highest = numbers[0];
#pragma unroll
    for (int i = 1; i < kSegment; ++i) {
      lowest = lower(lowest, numbers[i]);
      highest = higher(highest, numbers[i]);
    }
    for (int other = 1; other < per_group; other *= 2) {
      lowest = lower(lowest, __shfl_xor_sync(0xffffffffu, lowest, other));
      highest = higher(highest, __shfl_xor_sync(0xffffffffu, highest, other));
    }
    if (!inside) {
      continue;
    }
    AffineGroup group = affine_rule(lowest, highest, top);
    if (segment % per_group == 0) {
      scales[segment / per_group] = convert<T>(group.scale);
      biases[segment / per_group] = convert<T>(group.bias);
    }
    pack_codes(numbers, group, top, bits, codes + segment * bits);
  }
}

template <typename S, typename T>
__global__ void __launch_bounds__(kThreads, 3) dequantize_codes(
    const uint32_t* words,
    const S* scales,
    const S* biases,
    int64_t eights,
    int eights_per_group_log2,
    int bits,
    T* out) {
  uint32_t mask = (1u << bits) - 1;
  int64_t step = int64_t(gridDim.x) * kThreads * kSteps;
  for (int64_t first = int64_t(blockIdx.x) * kThreads * kSteps + threadIdx.x;
       first < eights;
       first += step) {
    uint64_t codes[kSteps];
    S scales_of[kSteps];
    S biases_of[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      // Past the end the last one is read: no branch parts the loads.
      int64_t at = min(first + i * kThreads, eights - 1);
      codes[i] = load_eight_codes(words, at, bits);
      scales_of[i] = scales[at >> eights_per_group_log2];
      biases_of[i] = biases[at >> eights_per_group_log2];
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      int64_t at = first + i * kThreads;
      if (at >= eights) {
        continue;
      }
      auto scale = to_compute(scales_of[i]);
      auto bias = to_compute(biases_of[i]);
      constexpr int V = pack_size_v<T>;
#pragma unroll
      for (int j = 0; j < 8; j += V) {
        Pack<T, V> pack;
#pragma unroll
        for (int k = 0; k < V; ++k) {
          auto code = static_cast<uint32_t>(codes[i]) & mask;
          codes[i] >>= bits;
          pack[k] = convert<T>(fmaf(code_value(code), scale, bias));
        }
        store_pack(out + at * 8 + j, pack);
      }
    }
  }
}

int log2_of(int x) {
  int log = 0;
  while ((1 << log) < x) {
    ++log;
  }
  return log;
}

template <typename S, typename T>
void run_dequantize(const QuantizedMatrix& w, void* out, Encoder& e) {
  int64_t eights = w.rows * w.cols / 8;
  e.launch(
      dequantize_codes<S, T>,
      grid_for(static_cast<size_t>((eights + kSteps - 1) / kSteps), kThreads),
      kThreads,
      0,
      w.codes,
      static_cast<const S*>(w.scales),
      static_cast<const S*>(w.biases),
      eights,
      log2_of(w.group_size / 8),
      w.bits,
      static_cast<T*>(out));
}

// Notes few numbers in the encoder's list.
bool note_dequantize(
    const QuantizedMatrix& w, Dtype type, void* out, Encoder& e) {
  int64_t numbers = w.rows * w.cols;
  if (numbers > static_cast<int64_t>(BatchEntry::most_elements) ||
      !e.can_batch()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::dequantize;
  entry.types[0] = batch_type(type);
  entry.types[1] = batch_type(w.type);
  entry.size = static_cast<uint32_t>(numbers / 8);
  entry.quantized_row = {
      w.codes,
      w.scales,
      w.biases,
      nullptr,
      out,
      static_cast<int32_t>(w.cols),
      static_cast<uint8_t>(w.bits),
      static_cast<uint8_t>(log2_of(w.group_size / 8))};
  e.batch(entry);
  return true;
}

}  // namespace

void dequantize(const QuantizedMatrix& w, Dtype type, void* out, Encoder& e) {
  if (note_dequantize(w, type, out, e)) {
    return;
  }
  bool wide = type == Dtype::Val::float32;
  if (w.type == Dtype::Val::float16) {
    wide ? run_dequantize<half, float>(w, out, e)
         : run_dequantize<half, half>(w, out, e);
  } else if (w.type == Dtype::Val::bfloat16) {
    wide ? run_dequantize<bhalf, float>(w, out, e)
         : run_dequantize<bhalf, bhalf>(w, out, e);
  } else {
    run_dequantize<float, float>(w, out, e);
  }
}

void quantize(
    const Quantize& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e) {
  for (array& out : outputs) {
    e.allocate(out);
  }
  if (inputs[0].size() == 0) {
    return;
  }
  array w = row_contiguous(inputs[0], e);
  int64_t segments = static_cast<int64_t>(w.size()) / kSegment;
  visit_real_float(w.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = e.in<T>(w);
    e.launch(
        quantize_groups<T>,
        grid_for(static_cast<size_t>(segments), kThreads),
        kThreads,
        0,
        from,
        segments,
        op.params().group_size / kSegment,
        op.params().bits,
        reinterpret_cast<uintptr_t>(from) % 16 == 0,
        e.out<uint32_t>(outputs[0]),
        e.out<T>(outputs[1]),
        e.out<T>(outputs[2]));
  });
}

void dequantize(
    const Dequantize& op,
    const array& w,
    const array& scales,
    const array& biases,
    array& out,
    Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  array codes = row_contiguous(w, e);
  array by = row_contiguous(scales, e);
  array from = row_contiguous(biases, e);
  int64_t cols = out.shape(-1);
  dequantize(
      QuantizedMatrix{
          .codes = e.in<uint32_t>(codes),
          .scales = e.in(by),
          .biases = e.in(from),
          .type = scales.dtype(),
          .bits = op.params().bits,
          .group_size = op.params().group_size,
          .rows = static_cast<int64_t>(out.size()) / cols,
          .cols = cols},
      out.dtype(),
      e.out(out),
      e);
}

}  // namespace mlx::core::cuda
