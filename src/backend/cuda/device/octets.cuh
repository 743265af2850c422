// Products in float32 with a quantized matrix, eight codes of a line at a time.
#pragma once

#include "backend/cuda/device/codes.cuh"

namespace mlx::core::cuda {

/// Bits is 4 or 8, or 0 for the width that is given.
template <int Bits>
inline constexpr float offset_v = Bits == 0 ? 0.0f : float(1 << Bits);

/// The octet's codes, each plus the offset.
template <int Bits>
__device__ __forceinline__ void unpack_octet(
    uint64_t codes, int bits, float (&to)[8]) {
  auto low = static_cast<uint32_t>(codes);
  auto high = static_cast<uint32_t>(codes >> 32);
  if constexpr (Bits == 4) {
    to[0] = offset_code<4, 0>(low);
    to[1] = offset_code<4, 4>(low);
    to[2] = offset_code<4, 8>(low);
    to[3] = offset_code<4, 12>(low);
    to[4] = offset_code<4, 16>(low);
    to[5] = offset_code<4, 20>(low);
    to[6] = offset_code<4, 24>(low);
    to[7] = offset_code<4, 28>(low);
  } else if constexpr (Bits == 8) {
    to[0] = offset_code<8, 0>(low);
    to[1] = offset_code<8, 8>(low);
    to[2] = offset_code<8, 16>(low);
    to[3] = offset_code<8, 24>(low);
    to[4] = offset_code<8, 0>(high);
    to[5] = offset_code<8, 8>(high);
    to[6] = offset_code<8, 16>(high);
    to[7] = offset_code<8, 24>(high);
  } else {
    uint32_t mask = (1u << bits) - 1;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      to[i] = code_value(static_cast<uint32_t>(codes) & mask);
      codes >>= bits;
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
  float values[8];
  unpack_octet<Bits>(codes, bits, values);
  float shift = fmaf(-offset_v<Bits>, scale, bias);
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
    float product = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      product = fmaf(values[i], x[row][i], product);
    }
    sums[row] = fmaf(scale, product, fmaf(shift, x_sums[row], sums[row]));
  }
}

}  // namespace mlx::core::cuda
