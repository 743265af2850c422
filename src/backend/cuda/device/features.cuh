// Eight neighbouring numbers of a row, as a thread holds them.
#pragma once

#include "backend/cuda/device/types.cuh"

namespace mlx::core::cuda {

/// 8 features as memory has them. Loading is apart from converting, so that
/// many loads are under way before the first is waited for.
template <typename T>
struct Features {
  static constexpr int packs = sizeof(T) * 8 / 16;
  Pack<T, 8 / packs> raw[packs];

  /// `valid` of them exist; with `packed` all or none.
  template <bool packed>
  __device__ __forceinline__ void load(const T* from, int valid) {
    if constexpr (packed) {
#pragma unroll
      for (int i = 0; i < packs; ++i) {
        raw[i] = valid > 0 ? load_pack<8 / packs>(from + i * (8 / packs))
                           : Pack<T, 8 / packs>{};
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        raw[i * packs / 8][i % (8 / packs)] =
            i < valid ? from[i] : convert<T>(0.0f);
      }
    }
  }
  __device__ __forceinline__ float operator[](int i) const {
    return to_compute(raw[i * packs / 8][i % (8 / packs)]);
  }
};

}  // namespace mlx::core::cuda
