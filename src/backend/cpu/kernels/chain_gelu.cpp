// A whole gelu, x (1 + erf(x / sqrt(2))) / 2, as one stage that goes through
// all groups itself. The multipliers and how far ahead the processor sees bound
// it, so each jump, address and register counts: a group takes 55 cycles where
// its stages one by one take 66 (Zen 3).
#include "backend/cpu/kernels/chain_stage.h"
#include "backend/cpu/simd/erf_pair.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

// The stages that it stands for, which hold the operands.
enum Operand { kLoad, kFirst, kErf, kAdded, kFactor, kLast, kStore, kEnd };

MLX_INLINE float number(const ChainStage& s) {
  return *static_cast<const float*>(s.at);
}

/// All four are there before what follows begins: in the compiler's order one
/// of them goes to the stack and back.
MLX_INLINE void keep_order(V (&v)[4]) {
  asm volatile("" : "+v"(v[0].v), "+v"(v[1].v), "+v"(v[2].v), "+v"(v[3].v));
}

template <bool Streaming>
MLX_INLINE void put(V x, float* p) {
  if constexpr (Streaming) {
    stream_bytes(x.v, p);
  } else {
    x.store(p);
  }
}

/// A number as a vector in memory: erf_pair leaves no register for it.
struct Row {
  alignas(kVecBytes) float lanes[V::size];

  explicit Row(float x) {
    for (float& lane : lanes) {
      lane = x;
    }
    asm("" : "+m"(lanes));
  }
  MLX_INLINE V get() const { return V::load(lanes); }
};

/// Each result is rounded as that of the single operation.
template <bool Divides, bool DividesLast, bool Streaming>
MLX_INLINE void gelu_loop(const ChainStage* s, float last_number) {
  const Row first(number(s[kFirst]));
  const Row added(number(s[kAdded]));
  const Row last(last_number);
  constexpr size_t kGroup = 4 * V::size;
  const float* x = operand<float>(s + kLoad, 0);
  const float* factor = operand<float>(s + kFactor, 0);
  float* out = const_cast<float*>(operand<float>(s + kStore, 0));
  const size_t step = s[kFactor].stride / sizeof(float) * kGroup;
  const size_t ahead = s[kLoad].ahead;
  const float* end = x + s[kEnd].stride;
  for (; x < end; x += kGroup, factor += step, out += kGroup) {
    prefetch(x, ahead);
    V v[4];
    for (int k = 0; k < 4; ++k) {
      V y = V::load(x + k * V::size);
      v[k] = Divides ? y / first.get() : y * first.get();
    }
    keep_order(v);
    math::erf_pair(v[0], v[1]);
    math::erf_pair(v[2], v[3]);
    keep_order(v);
    for (int k = 0; k < 4; ++k) {
      V y = math::rounded(added.get() + v[k]);
      y = math::rounded(V::load(factor + k * V::size) * y);
      y = DividesLast ? y / last.get() : y * last.get();
      put<Streaming>(y, out + k * V::size);
    }
  }
}

// Chains are run some groups at a time; the first call does all.
template <bool Divides, bool DividesLast, bool Streaming>
void gelu(const ChainStage* s, size_t i, V, V, V, V) {
  if (i > 0) {
    return;
  }
  float last = number(s[kLast]);
  float inverse = DividesLast ? exact_inverse(last) : last;
  if (DividesLast && inverse == 0.0f) {
    gelu_loop<Divides, DividesLast, Streaming>(s, last);
  } else {
    gelu_loop<Divides, false, Streaming>(s, inverse);
  }
}

template <bool Divides, bool DividesLast>
ChainFn entry(bool streaming) {
  return streaming ? erased(&gelu<Divides, DividesLast, true>)
                   : erased(&gelu<Divides, DividesLast, false>);
}

}  // namespace

ChainFn chain_gelu(bool divides, bool divides_last, bool streaming) {
  if (divides) {
    return divides_last ? entry<true, true>(streaming)
                        : entry<true, false>(streaming);
  }
  return divides_last ? entry<false, true>(streaming)
                      : entry<false, false>(streaming);
}

}  // namespace mlx::core::cpu::MLX_ISA
