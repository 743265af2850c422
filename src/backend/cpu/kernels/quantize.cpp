// Quantizing groups, and the numbers that packed codes stand for.
#include "backend/cpu/kernels/quantized.h"
#include "backend/cpu/kernels/quantized_decode.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

constexpr int kMaxGroup = 128;

/// Packs codes, lowest bits first; count * Bits is a multiple of 32.
template <int Bits>
void pack_codes(const int32_t* codes, int count, uint32_t* to) {
  uint64_t buffer = 0;
  int filled = 0;
  for (int i = 0; i < count; ++i) {
    buffer |= uint64_t(uint32_t(codes[i])) << filled;
    filled += Bits;
    if (filled >= 32) {
      *to++ = uint32_t(buffer);
      buffer >>= 32;
      filled -= 32;
    }
  }
}

struct AffineGroup {
  float scale;
  float bias;
};

float nearest(float x) {
  return round(Vec<float>(x))[0];
}

/// The rule: the scale spreads the codes from the extreme farther from zero
/// (the edge) to the other one, then is bent so that zero has a code.
AffineGroup affine_rule(float lowest, float highest, int bits) {
  float steps = float((1 << bits) - 1);
  float scale = (highest - lowest) / steps;
  if (scale < 1e-7f) {
    scale = 1e-7f;
  }
  bool from_lowest = __builtin_fabsf(lowest) > __builtin_fabsf(highest);
  float edge = from_lowest ? lowest : highest;
  scale = from_lowest ? scale : -scale;
  float code = nearest(edge / scale);
  if (code == 0) {
    return {scale, 0};
  }
  return {edge / code, edge};
}

template <typename S>
MLX_INLINE Vec<float> load_float(const S* p) {
  if constexpr (sizeof(S) == sizeof(double)) {
    constexpr int half = Vec<double>::size;
    return narrow(Vec<double>::load(p), Vec<double>::load(p + half));
  } else {
    return load_as<float>(p);
  }
}

template <typename S>
AffineGroup quantize_group(const S* w, int size, int bits, int32_t* codes) {
  using V = Vec<float>;
  V lowest = load_float(w);
  V highest = lowest;
  for (int i = V::size; i < size; i += V::size) {
    V x = load_float(w + i);
    lowest = minimum(lowest, x);
    highest = maximum(highest, x);
  }
  AffineGroup group = affine_rule(min(lowest), max(highest), bits);
  V top(float((1 << bits) - 1));
  for (int i = 0; i < size; i += V::size) {
    V code = round((load_float(w + i) - V(group.bias)) / V(group.scale));
    code = min_native(max_native(code, V(0.0f)), top);  // NaN becomes 0
    convert<int32_t>(code).store(codes + i);
  }
  return group;
}

template <typename S>
void store_number(float x, S* to) {
  if constexpr (sizeof(S) == sizeof(double)) {
    *to = double(x);
  } else {
    store_partial_as(Vec<float>(x), to, 1);
  }
}

template <typename S>
void quantize_as(
    const S* w,
    int64_t groups,
    int group_size,
    int bits,
    uint32_t* codes,
    S* scales,
    S* biases) {
  int32_t unpacked[kMaxGroup];
  for (int64_t g = 0; g < groups; ++g) {
    AffineGroup group =
        quantize_group(w + g * group_size, group_size, bits, unpacked);
    store_number(group.scale, scales + g);
    store_number(group.bias, biases + g);
    with_bits(bits, [&]<int Bits>() {
      pack_codes<Bits>(
          unpacked, group_size, codes + g * (group_size * Bits / 32));
    });
  }
}

template <typename Out>
void dequantize_as(
    const QuantizedMatrix& w,
    int64_t row,
    int64_t rows,
    int64_t col,
    int64_t cols,
    Out* out) {
  alignas(64) float numbers[kQuantizedTile + 8];
  constexpr int64_t n = Vec<float>::size;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t at = 0; at < cols; at += kQuantizedTile) {
      int64_t width = cols - at < kQuantizedTile ? cols - at : kQuantizedTile;
      decode_numbers(w, row + i, col + at, width, numbers);
      Out* to = out + i * cols + at;
      for (int64_t j = 0; j < width; j += n) {
        store_as(Vec<float>::load(numbers + j), to + j);
      }
    }
  }
}

}  // namespace

void quantize_groups(
    const void* w,
    Dtype type,
    int64_t groups,
    int group_size,
    int bits,
    uint32_t* codes,
    void* scales,
    void* biases) {
  auto run = [&]<typename S>(const S* from) {
    quantize_as(
        from,
        groups,
        group_size,
        bits,
        codes,
        static_cast<S*>(scales),
        static_cast<S*>(biases));
  };
  if (type == Dtype::Val::float64) {
    run(static_cast<const double*>(w));
  } else if (type == Dtype::Val::float16) {
    run(static_cast<const float16_t*>(w));
  } else if (type == Dtype::Val::bfloat16) {
    run(static_cast<const bfloat16_t*>(w));
  } else {
    run(static_cast<const float*>(w));
  }
}

void dequantize_block(
    const QuantizedMatrix& w,
    int64_t row,
    int64_t rows,
    int64_t col,
    int64_t cols,
    Dtype type,
    void* out) {
  if (type == Dtype::Val::float16) {
    dequantize_as(w, row, rows, col, cols, static_cast<float16_t*>(out));
  } else if (type == Dtype::Val::bfloat16) {
    dequantize_as(w, row, rows, col, cols, static_cast<bfloat16_t*>(out));
  } else {
    dequantize_as(w, row, rows, col, cols, static_cast<float*>(out));
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
