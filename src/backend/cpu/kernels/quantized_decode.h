// Packed codes to numbers in their own order: unpacks a tile lane by lane and
// transposes it in registers.
#pragma once

#include "backend/cpu/kernels/quantized.h"
#include "backend/cpu/kernels/quantized_codes.h"
#include "backend/cpu/kernels/register_transpose.h"

namespace mlx::core::cpu::MLX_ISA {

/// The numbers of one tile; writes up to 8 floats past them.
template <int Bits, int Groups>
MLX_INLINE void decode_tile(
    const Word8& lanes, const float* scales, const float* biases, float* to) {
  using C = Codes<Bits>;
  Float8 scale, bias;
  spread_groups<Groups>(scales, scale);
  spread_groups<Groups>(biases, bias);
  constexpr int kRows = C::per_lane < 8 ? C::per_lane : 8;
#pragma GCC unroll 2
  for (int start = 0; start < C::per_lane; start += 8) {
    Float8 rows[8] = {};
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
      float even = C::unscale(0, start + j);
      float odd = C::unscale(1, start + j);
      Float8 unscale{even, odd, even, odd, even, odd, even, odd};
      Float8 value;
      tile_values<Bits>(lanes, start + j, value);
      rows[j] = value * (scale * unscale) + bias;
    }
    transpose_registers<8>(rows);
    // Ascending: the idle end of a short row is overwritten by the next one.
#pragma GCC unroll 8
    for (int lane = 0; lane < 8; ++lane) {
      __builtin_memcpy(
          to + lane * C::per_lane + start, &rows[lane], sizeof(Float8));
    }
  }
}

template <int Bits, int Groups>
void decode_tiles(
    const uint8_t* codes,
    const float* scales,
    const float* biases,
    int group_size,
    int64_t count,
    float* to) {
  using C = Codes<Bits>;
  alignas(32) float numbers[C::count + 8];
  for (int64_t i = 0; i < count; i += C::count) {
    int64_t present = count - i < C::count ? count - i : C::count;
    Word8 lanes;
    if (present == C::count) {
      load_tile<Bits>(codes + i * Bits / 8, lanes);
    } else {
      load_tile_part<Bits>(
          codes + i * Bits / 8, int(present) * Bits / 8, lanes);
    }
    int64_t group = i / group_size;
    decode_tile<Bits, Groups>(lanes, scales + group, biases + group, numbers);
    __builtin_memcpy(to + i, numbers, size_t(present) * sizeof(float));
  }
}

/// Numbers [col, col + count) of a row, count <= kQuantizedTile; col is a
/// multiple of kQuantizedTile and count one of the group size.
static inline __attribute__((noinline)) void decode_numbers(
    const QuantizedMatrix& w,
    int64_t row,
    int64_t col,
    int64_t count,
    float* to) {
  constexpr int kGroups = kQuantizedTile / 32;
  float scales[2 * kGroups];
  float biases[2 * kGroups];
  int64_t group = (row * w.cols + col) / w.group_size;
  int64_t groups = count / w.group_size;
  load_floats(w.scales, w.type, group, groups, 2 * kGroups, scales);
  load_floats(w.biases, w.type, group, groups, 2 * kGroups, biases);
  const uint8_t* codes =
      static_cast<const uint8_t*>(w.codes) + (row * w.cols + col) * w.bits / 8;
  with_bits(w.bits, [&]<int Bits>() {
    with_groups<Bits>(w.group_size, [&]<int Groups>() {
      decode_tiles<Bits, Groups>(
          codes, scales, biases, w.group_size, count, to);
    });
  });
}

}  // namespace mlx::core::cpu::MLX_ISA
