// Random bits: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), the same words as on the CPU. The
// counters 0 .. words - 1 of a key are hashed in pairs of a number of the first
// half and its partner in the second; an odd one in the middle has partner 0.
#include "backend/cuda/copy.h"
#include "backend/cuda/device/index.cuh"
#include "backend/cuda/random.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;

template <int r0, int r1, int r2, int r3>
__device__ __forceinline__ void four_rounds(uint32_t& x, uint32_t& y) {
  x += y;
  y = __funnelshift_l(y, y, r0) ^ x;
  x += y;
  y = __funnelshift_l(y, y, r1) ^ x;
  x += y;
  y = __funnelshift_l(y, y, r2) ^ x;
  x += y;
  y = __funnelshift_l(y, y, r3) ^ x;
}

__device__ __forceinline__ void threefry(
    uint32_t k0, uint32_t k1, uint32_t& x, uint32_t& y) {
  uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDAu;
  x += k0;
  y += k1;
  four_rounds<13, 15, 26, 6>(x, y);
  x += k1;
  y += k2 + 1;
  four_rounds<17, 29, 16, 24>(x, y);
  x += k2;
  y += k0 + 2;
  four_rounds<13, 15, 26, 6>(x, y);
  x += k0;
  y += k1 + 3;
  four_rounds<17, 29, 16, 24>(x, y);
  x += k1;
  y += k2 + 4;
  four_rounds<13, 15, 26, 6>(x, y);
  x += k2;
  y += k0 + 5;
}

// What each key fills.
struct Filled {
  size_t bytes;
  size_t words;  // the last one in part where bytes is no multiple of 4
  size_t pairs;  // half of the words, rounded up
  size_t keys;
  FastDivisor divide;  // by pairs
  bool is_small;       // all pairs are counted by 31 bits
};

__device__ __forceinline__ void put_word(
    unsigned char* to, const Filled& filled, size_t word, uint32_t value) {
  if (filled.bytes % 4 == 0) {
    reinterpret_cast<uint32_t*>(to)[word] = value;
    return;
  }
  // Other keys' bytes may share the word.
  for (size_t i = 0; i < 4 && 4 * word + i < filled.bytes; ++i) {
    to[4 * word + i] = static_cast<unsigned char>(value >> (8 * i));
  }
}

// A pair of words a thread and step: some 75 instructions for 8 bytes, which
// neighbours write to two runs of memory.
__global__ void random_words(
    const uint32_t* keys, unsigned char* out, Filled filled) {
  size_t total = filled.pairs * filled.keys;
  size_t n = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  size_t step = gridDim.x * size_t(blockDim.x);
  for (; n < total; n += step) {
    size_t key = 0;
    if (filled.keys > 1) {
      key = filled.is_small ? filled.divide.quotient(static_cast<uint32_t>(n))
                            : n / filled.pairs;
    }
    size_t i = n - key * filled.pairs;
    size_t partner = i + filled.pairs;
    auto x = static_cast<uint32_t>(i);
    auto y = partner < filled.words ? static_cast<uint32_t>(partner) : 0;
    threefry(keys[2 * key], keys[2 * key + 1], x, y);
    unsigned char* to = out + key * filled.bytes;
    put_word(to, filled, i, x);
    if (partner < filled.words) {
      put_word(to, filled, partner, y);
    }
  }
}

}  // namespace

void random_bits(const RandomBits&, const array& keys, array& out, Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  array rows = row_contiguous(keys, e);
  Filled filled{};
  filled.keys = keys.size() / 2;
  filled.bytes = out.nbytes() / filled.keys;
  filled.words = (filled.bytes + 3) / 4;
  filled.pairs = (filled.words + 1) / 2;
  size_t total = filled.pairs * filled.keys;
  filled.is_small = fits_32_bits(total);
  if (filled.is_small) {
    filled.divide = FastDivisor(static_cast<uint32_t>(filled.pairs));
  }
  e.launch(
      random_words,
      grid_for(total, kThreads),
      kThreads,
      0,
      e.in<uint32_t>(rows),
      e.out<unsigned char>(out),
      filled);
}

}  // namespace mlx::core::cuda
