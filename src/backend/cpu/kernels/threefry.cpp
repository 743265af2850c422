// Plain loops that the compiler turns into vectors: every lane is one pair of
// counters, 20 rounds of add, rotate and exclusive or.
#include "backend/cpu/kernels/threefry.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

inline uint32_t rotate(uint32_t x, int by) {
  return (x << by) | (x >> (32 - by));
}

constexpr uint32_t kLanes = 64;

template <int r0, int r1, int r2, int r3>
inline void four_rounds(uint32_t* x, uint32_t* y) {
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t a = x[i];
    uint32_t b = y[i];
    a += b;
    b = rotate(b, r0) ^ a;
    a += b;
    b = rotate(b, r1) ^ a;
    a += b;
    b = rotate(b, r2) ^ a;
    a += b;
    b = rotate(b, r3) ^ a;
    x[i] = a;
    y[i] = b;
  }
}

inline void inject(uint32_t* x, uint32_t* y, uint32_t k0, uint32_t k1) {
  for (uint32_t i = 0; i < kLanes; ++i) {
    x[i] += k0;
    y[i] += k1;
  }
}

}  // namespace

void threefry_pairs(
    uint32_t key0,
    uint32_t key1,
    uint32_t begin,
    uint32_t end,
    uint32_t half,
    uint32_t* low,
    uint32_t* high) {
  const uint32_t ks[3] = {key0, key1, key0 ^ key1 ^ 0x1BD11BDAu};
  alignas(64) uint32_t x[kLanes];
  alignas(64) uint32_t y[kLanes];
  for (uint32_t at = begin; at < end; at += kLanes) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      x[i] = at + i;
      y[i] = at + i + half;
    }
    inject(x, y, ks[0], ks[1]);
    four_rounds<13, 15, 26, 6>(x, y);
    inject(x, y, ks[1], ks[2] + 1);
    four_rounds<17, 29, 16, 24>(x, y);
    inject(x, y, ks[2], ks[0] + 2);
    four_rounds<13, 15, 26, 6>(x, y);
    inject(x, y, ks[0], ks[1] + 3);
    four_rounds<17, 29, 16, 24>(x, y);
    inject(x, y, ks[1], ks[2] + 4);
    four_rounds<13, 15, 26, 6>(x, y);
    inject(x, y, ks[2], ks[0] + 5);
    uint32_t n = end - at < kLanes ? end - at : kLanes;
    for (uint32_t i = 0; i < n; ++i) {
      low[at - begin + i] = x[i];
      high[at - begin + i] = y[i];
    }
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
