// Rotary encoding in one launch. A thread computes the cosines and sines of
// its pairs of features once and turns them in several heads of its token.
// Each feature is read and written once: the limit is memory.
#include <algorithm>
#include <cmath>

#include "backend/cuda/copy.h"
#include "backend/cuda/device/rope.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/rope.h"

namespace mlx::core::cuda {

namespace {

// Strides in elements.
template <typename T>
struct Rope {
  const T* x;
  T* y;
  int64_t batch;
  int64_t heads;
  int64_t tokens;
  int64_t features;
  int64_t batch_stride;
  int64_t head_stride;
  int64_t token_stride;
  /// The first 2 * half features turn, the others are copied.
  int64_t half;
  bool traditional;
  /// Null when it is known at launch.
  const int32_t* offset;
  int64_t offset_stride;
  int32_t known_offset;
  /// Divisors of the positions; null: pair i turns by 2^(i * exponent).
  const float* freqs;
  int64_t freqs_stride;
  double exponent;
  float scale;
  bool forward;
};

// The angle of pair i of the token at `position`.
template <typename T>
__device__ __forceinline__ float angle(
    const Rope<T>& a, float position, int64_t i) {
  return rope_angle(
      position, i, a.freqs, a.freqs_stride, a.exponent, a.scale, a.forward);
}

// A thread has N pairs: two packs of N elements, neighbours in the traditional
// order, half a head apart in the other; or N elements that are copied.
// Neighbouring threads have neighbouring packs of a token, blockIdx.y is the
// first of a thread's heads.
template <typename T, int N>
__global__ void rope_pairs(Rope<T> a) {
  using A = compute_t<T>;
  int64_t turning = a.half / N;
  int64_t slots = turning + (a.features - 2 * a.half) / N;
  int64_t id = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (id >= a.batch * a.tokens * slots) {
    return;
  }
  int64_t slot = id % slots;
  int64_t token = id / slots % a.tokens;
  int64_t b = id / slots / a.tokens;
  const T* x = a.x + b * a.batch_stride + token * a.token_stride;
  T* y = a.y + (b * a.heads * a.tokens + token) * a.features;
  int64_t y_stride = a.tokens * a.features;
  if (slot >= turning) {
    int64_t at = 2 * a.half + (slot - turning) * N;
    for (int64_t h = blockIdx.y; h < a.heads; h += gridDim.y) {
      store_pack(
          y + h * y_stride + at, load_pack<N>(x + h * a.head_stride + at));
    }
    return;
  }
  int32_t offset = a.offset ? a.offset[b * a.offset_stride] : a.known_offset;
  auto position = static_cast<float>(offset + token);
  float c[N];
  float s[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    sincosf(angle(a, position, slot * N + j), &s[j], &c[j]);
  }
  int64_t first = a.traditional ? 2 * slot * N : slot * N;
  int64_t second = first + (a.traditional ? N : a.half);
  for (int64_t h = blockIdx.y; h < a.heads; h += gridDim.y) {
    Pack<T, N> in[2] = {
        load_pack<N>(x + h * a.head_stride + first),
        load_pack<N>(x + h * a.head_stride + second)};
    Pack<T, N> out[2];
    auto turn = [&](int j, const T& p_in, const T& q_in, T& p_out, T& q_out) {
      A p = to_compute(p_in);
      A q = to_compute(q_in);
      p_out = convert<T>(p * A(c[j]) - q * A(s[j]));
      q_out = convert<T>(p * A(s[j]) + q * A(c[j]));
    };
    if (a.traditional) {
#pragma unroll
      for (int j = 0; j < N; ++j) {
        constexpr int w = N;
        int p = 2 * j;
        int q = 2 * j + 1;
        turn(
            j,
            in[p / w][p % w],
            in[q / w][q % w],
            out[p / w][p % w],
            out[q / w][q % w]);
      }
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) {
        turn(j, in[0][j], in[1][j], out[0][j], out[1][j]);
      }
    }
    store_pack(y + h * y_stride + first, out[0]);
    store_pack(y + h * y_stride + second, out[1]);
  }
}

template <typename T, int N>
void launch_pairs(const Rope<T>& a, Encoder& e) {
  constexpr int kThreads = 128;
  int64_t slots = a.half / N + (a.features - 2 * a.half) / N;
  int64_t threads = a.batch * a.tokens * slots;
  // Enough to fill the device, then more heads for each of them.
  int64_t wanted = int64_t(2048) * device_facts().multiprocessors;
  int64_t groups = std::clamp<int64_t>(
      (wanted + threads - 1) / threads, 1, std::min<int64_t>(a.heads, 65535));
  dim3 grid(
      static_cast<unsigned>((threads + kThreads - 1) / kThreads),
      static_cast<unsigned>(groups));
  e.launch(rope_pairs<T, N>, grid, kThreads, 0, a);
}

// Whether all packs of 16 bytes begin at a multiple of that.
template <typename T>
bool is_packed(const Rope<T>& a) {
  constexpr int64_t n = pack_size_v<T>;
  auto fits = [](int64_t size, int64_t stride) {
    return size == 1 || stride % n == 0;
  };
  return reinterpret_cast<uintptr_t>(a.x) % 16 == 0 && a.half % n == 0 &&
         a.features % n == 0 && fits(a.batch, a.batch_stride) &&
         fits(a.heads, a.head_stride) && fits(a.tokens, a.token_stride);
}

// Fewer elements want more threads, with one pair each.
constexpr size_t kManyElements = size_t(1) << 19;

void fill_offset(const array& offset, auto& a, Encoder& e) {
  alignas(16) char known[16];
  if (Encoder::host_scalar(offset, known)) {
    std::memcpy(&a.known_offset, known, sizeof(a.known_offset));
    return;
  }
  a.offset = e.in<int32_t>(offset);
  a.offset_stride = offset.ndim() == 0 ? 0 : offset.strides(0);
}

void fill_frequencies(
    const fast::RoPEParams& p,
    const std::vector<array>& inputs,
    auto& a,
    Encoder& e) {
  if (inputs.size() == 3) {
    a.freqs = e.in<float>(inputs[2]);
    a.freqs_stride = inputs[2].strides(0);
  } else {
    a.exponent = -2.0 / p.dims * std::log2(static_cast<double>(p.base));
  }
}

// Notes one token in the encoder's list.
template <typename T>
bool note_rope(const Rope<T>& a, const array& out, Encoder& e) {
  if (a.batch != 1 || a.tokens != 1 || !batches(out.dtype()) ||
      out.size() > BatchEntry::most_elements || a.freqs_stride < 0 ||
      a.freqs_stride > 65536 || a.head_stride < 0 || a.head_stride > 65536 ||
      !e.can_batch()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::rope;
  entry.types[0] = batch_type(out.dtype());
  entry.size = static_cast<uint32_t>(out.size());
  entry.rope = {
      a.x,
      a.freqs,
      a.offset,
      a.y,
      a.exponent,
      a.scale,
      a.known_offset,
      static_cast<int32_t>(a.features),
      static_cast<int32_t>(a.half),
      static_cast<int32_t>(a.head_stride),
      static_cast<int32_t>(a.freqs_stride),
      a.traditional,
      a.forward};
  e.batch(entry);
  return true;
}

}  // namespace

void rope(
    const fast::RoPE& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  const fast::RoPEParams& p = op.params();
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  // Heads of a token lie one stride apart only if the axes between batch and
  // token are one; else they are made so.
  bool is_readable = inputs[0].ndim() <= 4 &&
                     (inputs[0].strides(-1) == 1 || inputs[0].shape(-1) == 1);
  array x = is_readable ? inputs[0] : row_contiguous(inputs[0], e);
  visit_real_float(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Rope<T> a{};
    a.x = e.in<T>(x);
    a.y = e.out<T>(out);
    a.batch = x.shape(0);
    a.tokens = x.shape(-2);
    a.features = x.shape(-1);
    a.heads =
        static_cast<int64_t>(x.size()) / (a.batch * a.tokens * a.features);
    a.batch_stride = x.strides(0);
    a.head_stride = x.ndim() == 4 ? x.strides(1) : a.tokens * a.features;
    a.token_stride = x.strides(-2);
    a.half = p.dims / 2;
    a.traditional = p.traditional;
    a.scale = p.scale;
    a.forward = p.forward;
    fill_offset(inputs[1], a, e);
    fill_frequencies(p, inputs, a, e);
    if (note_rope(a, out, e)) {
      return;
    }
    if (out.size() >= kManyElements && is_packed(a)) {
      launch_pairs<T, pack_size_v<T>>(a, e);
    } else {
      launch_pairs<T, 1>(a, e);
    }
  });
}

}  // namespace mlx::core::cuda
