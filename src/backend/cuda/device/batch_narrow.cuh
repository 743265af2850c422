// Entries of a list that one block does; all its threads take part. Formulas
// are those of the table of elementwise operations, in float32. What other
// blocks have written is read by plain loads: the cache of constants would not
// see it.
#pragma once

#include "backend/cuda/batch.h"
#include "backend/cuda/device/batch_numbers.cuh"
#include "backend/cuda/device/batch_search.cuh"
#include "backend/cuda/device/codes.cuh"
#include "backend/cuda/device/rope.cuh"
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

__device__ __forceinline__ float operand(
    const BatchEntry& entry, int k, uint32_t at) {
  if ((entry.immediates >> k & 1) != 0) {
    return load_float(&entry.elementwise.from[k], 0, entry.types[k]);
  }
  auto* from = reinterpret_cast<const void*>(entry.elementwise.from[k]);
  return load_float(
      from, (entry.splats >> k & 1) != 0 ? 0 : at, entry.types[k]);
}

// Operations that floats do not have are never listed.
template <ElementwiseOp op, typename... Operands>
__device__ __forceinline__ float apply(Operands... x) {
  if constexpr (elementwise_accepts(op, float32)) {
    return static_cast<float>(detail::Formula<op>::of(x...));
  } else {
    return 0.0f;
  }
}

__device__ float evaluate(ElementwiseOp op, float a, float b) {
  switch (op) {
#define UNARY(name, ...)    \
  case ElementwiseOp::name: \
    return apply<ElementwiseOp::name>(a);
#define BINARY(name, ...)   \
  case ElementwiseOp::name: \
    return apply<ElementwiseOp::name>(a, b);
#include "ops/elementwise.def"
    default:
      return a;
  }
}

__device__ __forceinline__ bool is_plain(const BatchEntry& entry) {
  constexpr auto kFloat = static_cast<uint8_t>(Dtype::Val::float32);
  return entry.operands <= 2 && entry.immediates == 0 &&
         entry.types[0] == kFloat && entry.types[3] == kFloat &&
         (entry.operands == 1 || entry.types[1] == kFloat);
}

// float32 alone: both operands are asked for before either is waited for.
__device__ __forceinline__ void do_plain(const BatchEntry& entry) {
  int last = entry.operands - 1;
  auto* a = reinterpret_cast<const float*>(entry.elementwise.from[0]);
  auto* b = reinterpret_cast<const float*>(entry.elementwise.from[last]);
  uint32_t a_step = (entry.splats & 1) != 0 ? 0 : 1;
  uint32_t b_step = (entry.splats >> last & 1) != 0 ? 0 : 1;
  auto* to = static_cast<float*>(entry.elementwise.to);
  for (uint32_t i = threadIdx.x; i < entry.size; i += blockDim.x) {
    float x = a[i * a_step];
    float y = b[i * b_step];
    to[i] = evaluate(entry.op, x, y);
  }
}

// In 64 bits, which hold all numbers of shorter types.
__device__ __forceinline__ int64_t
evaluate_whole(ElementwiseOp op, int64_t a, int64_t b) {
  auto wide_a = static_cast<uint64_t>(a);
  auto wide_b = static_cast<uint64_t>(b);
  switch (op) {
    case ElementwiseOp::add:
      return static_cast<int64_t>(wide_a + wide_b);
    case ElementwiseOp::subtract:
      return static_cast<int64_t>(wide_a - wide_b);
    case ElementwiseOp::multiply:
      return static_cast<int64_t>(wide_a * wide_b);
    case ElementwiseOp::negative:
      return static_cast<int64_t>(0 - wide_a);
    case ElementwiseOp::maximum:
      return max(a, b);
    case ElementwiseOp::minimum:
      return min(a, b);
    case ElementwiseOp::equal:
      return a == b;
    case ElementwiseOp::not_equal:
      return a != b;
    case ElementwiseOp::less:
      return a < b;
    case ElementwiseOp::less_equal:
      return a <= b;
    case ElementwiseOp::greater:
      return a > b;
    case ElementwiseOp::greater_equal:
      return a >= b;
    case ElementwiseOp::logical_and:
      return a != 0 && b != 0;
    case ElementwiseOp::logical_or:
      return a != 0 || b != 0;
    case ElementwiseOp::logical_not:
      return a == 0;
    case ElementwiseOp::bitwise_and:
      return a & b;
    case ElementwiseOp::bitwise_or:
      return a | b;
    default:
      return a;
  }
}

// Bools and whole numbers; without operands, from[0] and so many steps of
// from[1] as elements lie before.
__device__ void do_whole(const BatchEntry& entry) {
  auto operand = [&](int k, uint32_t at) {
    const uint64_t& given = entry.elementwise.from[k];
    if ((entry.immediates >> k & 1) != 0) {
      return load_whole(&given, 0, entry.types[k]);
    }
    return load_whole(
        reinterpret_cast<const void*>(given),
        (entry.splats >> k & 1) != 0 ? 0 : at,
        entry.types[k]);
  };
  for (uint32_t i = threadIdx.x; i < entry.size; i += blockDim.x) {
    int64_t value;
    if (entry.operands == 0) {
      value = static_cast<int64_t>(
          entry.elementwise.from[0] + i * entry.elementwise.from[1]);
    } else {
      int64_t a = operand(0, i);
      value =
          evaluate_whole(entry.op, a, entry.operands > 1 ? operand(1, i) : 0);
    }
    store_whole(entry.elementwise.to, i, entry.types[3], value);
  }
}

__device__ __forceinline__ bool is_whole(const BatchEntry& entry) {
  return entry.operands <= 2 &&
         static_cast<Dtype::Val>(entry.types[0]) < Dtype::Val::float16;
}

__device__ void do_elementwise(const BatchEntry& entry) {
  if (is_plain(entry)) {
    return do_plain(entry);
  }
  if (is_whole(entry)) {
    return do_whole(entry);
  }
  for (uint32_t i = threadIdx.x; i < entry.size; i += blockDim.x) {
    float a = operand(entry, 0, i);
    float b = entry.operands > 1 ? operand(entry, 1, i) : 0.0f;
    float value;
    if (entry.operands > 2) {
      value = a != 0.0f ? b : operand(entry, 2, i);
    } else {
      value = evaluate(entry.op, a, b);
    }
    store_float(entry.elementwise.to, i, entry.types[3], value);
  }
}

// How far a copy's side is moved, in elements.
__device__ __forceinline__ int64_t moved_by(const BatchEntry& entry) {
  const BatchEntry::Copy& c = entry.copy;
  if (c.position == nullptr) {
    return 0;
  }
  int64_t at = load_whole(c.position, 0, entry.types[0]);
  at = at < 0 ? at + c.length : at;
  at = at < 0 ? 0 : at > c.last ? c.last : at;
  return at * c.stride;
}

template <typename T>
__device__ __forceinline__ void copy_as(
    const BatchEntry& entry, uint32_t first, uint32_t step) {
  const BatchEntry::Copy& c = entry.copy;
  int64_t moved = moved_by(entry);
  auto* from = static_cast<const T*>(c.from) + (c.moves_from ? moved : 0);
  auto* to = static_cast<T*>(c.to) + (c.moves_from ? 0 : moved);
  for (uint32_t i = first; i < entry.size; i += step) {
    uint32_t row = i / c.sizes[1];
    auto x = static_cast<int64_t>(i - row * c.sizes[1]);
    uint32_t plane = row / c.sizes[0];
    auto y = static_cast<int64_t>(row - plane * c.sizes[0]);
    auto z = static_cast<int64_t>(plane);
    to[z * c.to_strides[0] + y * c.to_strides[1] + x * c.to_strides[2]] = from
        [z * c.from_strides[0] + y * c.from_strides[1] + x * c.from_strides[2]];
  }
}

// By threads first, first + step, ...
__device__ void copy_by(
    const BatchEntry& entry, uint32_t first, uint32_t step) {
  switch (entry.width) {
    case 1:
      return copy_as<uint8_t>(entry, first, step);
    case 2:
      return copy_as<uint16_t>(entry, first, step);
    case 4:
      return copy_as<uint32_t>(entry, first, step);
    case 8:
      return copy_as<uint64_t>(entry, first, step);
    default:
      return copy_as<uint4>(entry, first, step);
  }
}

__device__ __forceinline__ void do_copy(const BatchEntry& entry) {
  copy_by(entry, threadIdx.x, blockDim.x);
}

// Of two entries apart: a half of the block each.
__device__ __forceinline__ void do_copies(
    const BatchEntry& one, const BatchEntry& other) {
  uint32_t half = blockDim.x / 2;
  if (threadIdx.x < half) {
    copy_by(one, threadIdx.x, half);
  } else {
    copy_by(other, threadIdx.x - half, blockDim.x - half);
  }
}

__device__ float sum_of_block(float value) {
  __shared__ float sums[kNarrowThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, step);
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = value;
  }
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0.0f;
  for (int step = 16; step > 0; step /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, step);
  }
  __syncthreads();
  return value;
}

// A row that a few numbers a thread are, all asked for at once.
template <typename T>
__device__ __forceinline__ void norm_short_row(
    const BatchEntry::Norm& norm, const T* from, T* to) {
  auto* weight = static_cast<const T*>(norm.weight);
  auto* added = static_cast<const T*>(norm.added);
  T x[kNormNumbers];
  T y[kNormNumbers];
  T w[kNormNumbers];
#pragma unroll
  for (int k = 0; k < kNormNumbers; ++k) {
    auto i = static_cast<int>(threadIdx.x + k * blockDim.x);
    if (i < norm.n) {
      x[k] = from[i];
      y[k] = added ? added[i] : convert<T>(0.0f);
      w[k] = weight ? weight[i] : convert<T>(1.0f);
    }
  }
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < kNormNumbers; ++k) {
    auto i = static_cast<int>(threadIdx.x + k * blockDim.x);
    if (i < norm.n) {
      if (added) {
        x[k] = convert<T>(to_compute(x[k]) + to_compute(y[k]));
        static_cast<T*>(norm.sum)[i] = x[k];
      }
      squares += to_compute(x[k]) * to_compute(x[k]);
    }
  }
  float mean = sum_of_block(squares) / static_cast<float>(norm.n);
  float factor = 1.0f / sqrtf(mean + norm.eps);
#pragma unroll
  for (int k = 0; k < kNormNumbers; ++k) {
    auto i = static_cast<int>(threadIdx.x + k * blockDim.x);
    if (i < norm.n) {
      to[i] = convert<T>(to_compute(x[k]) * factor * to_compute(w[k]));
    }
  }
}

template <typename T>
__device__ __forceinline__ void norm_short_rows(const BatchEntry::Norm& norm) {
  for (int row = 0; row < norm.rows; ++row) {
    norm_short_row<T>(
        norm,
        static_cast<const T*>(norm.from) + row * norm.pitch,
        static_cast<T*>(norm.to) + row * norm.n);
  }
}

__device__ void do_rms_norm(const BatchEntry& entry) {
  if (entry.norm.n <= kNormNumbers * static_cast<int>(blockDim.x)) {
    switch (static_cast<Dtype::Val>(entry.types[0])) {
      case Dtype::Val::float16:
        return norm_short_rows<half>(entry.norm);
      case Dtype::Val::bfloat16:
        return norm_short_rows<bhalf>(entry.norm);
      default:
        return norm_short_rows<float>(entry.norm);
    }
  }
  const BatchEntry::Norm& norm = entry.norm;
  uint8_t type = entry.types[0];
  for (int row = 0; row < norm.rows; ++row) {
    auto first = static_cast<uint32_t>(row * norm.pitch);
    float squares = 0.0f;
    for (int i = threadIdx.x; i < norm.n; i += blockDim.x) {
      float x = load_float(norm.from, first + i, type);
      squares += x * x;
    }
    float mean = sum_of_block(squares) / static_cast<float>(norm.n);
    float factor = 1.0f / sqrtf(mean + norm.eps);
    for (int i = threadIdx.x; i < norm.n; i += blockDim.x) {
      float x = load_float(norm.from, first + i, type) * factor;
      if (norm.weight) {
        x *= load_float(norm.weight, i, type);
      }
      store_float(norm.to, row * norm.n + i, type, x);
    }
  }
}

__device__ void do_rope(const BatchEntry& entry) {
  const BatchEntry::Rope& rope = entry.rope;
  uint8_t type = entry.types[0];
  auto features = static_cast<uint32_t>(rope.features);
  auto half = static_cast<uint32_t>(rope.half);
  int32_t position = rope.offset ? *rope.offset : rope.position;
  // A thread has one pair, or one feature that is copied.
  uint32_t slots = features - half;
  uint32_t all = entry.size / features * slots;
  for (uint32_t id = threadIdx.x; id < all; id += blockDim.x) {
    uint32_t head = id / slots;
    uint32_t slot = id - head * slots;
    uint32_t from = head * rope.head_stride;
    uint32_t to = head * features;
    if (slot >= half) {
      uint32_t at = half + slot;
      store_float(
          rope.to, to + at, type, load_float(rope.from, from + at, type));
      continue;
    }
    uint32_t first = rope.traditional ? 2 * slot : slot;
    uint32_t second = rope.traditional ? first + 1 : slot + half;
    float p = load_float(rope.from, from + first, type);
    float q = load_float(rope.from, from + second, type);
    float s;
    float c;
    float theta = rope_angle(
        static_cast<float>(position),
        slot,
        rope.freqs,
        rope.freqs_stride,
        rope.exponent,
        rope.scale,
        rope.forward);
    sincosf(theta, &s, &c);
    store_float(rope.to, to + first, type, p * c - q * s);
    store_float(rope.to, to + second, type, p * s + q * c);
  }
}

__device__ void do_dequantize(const BatchEntry& entry) {
  const BatchEntry::QuantizedRow& q = entry.quantized_row;
  uint32_t mask = (1u << q.bits) - 1;
  for (uint32_t octet = threadIdx.x; octet < entry.size; octet += blockDim.x) {
    uint64_t codes = load_eight_codes(q.codes, octet, q.bits);
    uint32_t group = octet >> q.octet_shift;
    float scale = load_float(q.scales, group, entry.types[1]);
    float bias = load_float(q.biases, group, entry.types[1]);
#pragma unroll 1
    for (uint32_t i = 0; i < 8; ++i) {
      float code = code_value(static_cast<uint32_t>(codes) & mask);
      codes >>= q.bits;
      store_float(q.to, octet * 8 + i, entry.types[0], fmaf(code, scale, bias));
    }
  }
}

__device__ __forceinline__ void do_narrow(const BatchEntry& entry) {
  if (entry.kind == BatchKind::elementwise) {
    do_elementwise(entry);
  } else if (entry.kind == BatchKind::copy) {
    do_copy(entry);
  } else if (entry.kind == BatchKind::rms_norm) {
    do_rms_norm(entry);
  } else if (entry.kind == BatchKind::dequantize) {
    do_dequantize(entry);
  } else if (entry.kind == BatchKind::search) {
    do_search(entry);
  } else {
    do_rope(entry);
  }
}

}  // namespace mlx::core::cuda
