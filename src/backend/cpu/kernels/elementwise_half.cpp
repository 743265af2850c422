// Block routines for float16 and bfloat16 that widen to float32 and round back
// in registers. Only for operations so cheap that separate conversion passes
// would cost more than the operation; the others go through converted blocks.
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

namespace detail {

/// Lanes of a 16-bit float, held as float32.
template <typename H>
struct HalfVec {
  static constexpr int size = Vec<float>::size;
  using Element = H;

  Vec<float> wide;

  static MLX_INLINE HalfVec load(const H* p) { return {load_as<float>(p)}; }
  static MLX_INLINE HalfVec load_partial(const H* p, size_t n) {
    return {load_partial_as<float>(p, n)};
  }
};

template <typename H>
MLX_INLINE void put(HalfVec<H> x, void* out, size_t i) {
  store_as(x.wide, static_cast<H*>(out) + i);
}
template <typename H>
MLX_INLINE void put(HalfVec<H> x, void* out, size_t i, size_t count) {
  store_partial_as(x.wide, static_cast<H*>(out) + i, count);
}

template <>
inline constexpr Dtype dtype_of<float16_t> = float16;
template <>
inline constexpr Dtype dtype_of<bfloat16_t> = bfloat16;

/// A row's formula in float32; floats come out as H, masks as they are.
template <typename Op>
struct InFloat {
  template <typename H>
  static MLX_INLINE HalfVec<H> wrap(Vec<float> x) {
    return {x};
  }
  template <typename H>
  static MLX_INLINE Mask<4> wrap(Mask<4> m) {
    return m;
  }
  template <typename H>
  static MLX_INLINE auto of(HalfVec<H> x) {
    return wrap<H>(Op::of(x.wide));
  }
  template <typename H>
  static MLX_INLINE auto of(HalfVec<H> a, HalfVec<H> b) {
    return wrap<H>(Op::of(a.wide, b.wide));
  }
};

constexpr bool is_cheap(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::abs:
    case ElementwiseOp::negative:
    case ElementwiseOp::sign:
    case ElementwiseOp::ceil:
    case ElementwiseOp::floor:
    case ElementwiseOp::round:
    case ElementwiseOp::square:
    case ElementwiseOp::sqrt:
    case ElementwiseOp::rsqrt:
    case ElementwiseOp::reciprocal:
    case ElementwiseOp::exp:
    case ElementwiseOp::log:
    case ElementwiseOp::sigmoid:
    case ElementwiseOp::tanh:
    case ElementwiseOp::erf:
    case ElementwiseOp::logical_not:
    case ElementwiseOp::add:
    case ElementwiseOp::subtract:
    case ElementwiseOp::multiply:
    case ElementwiseOp::divide:
    case ElementwiseOp::maximum:
    case ElementwiseOp::minimum:
    case ElementwiseOp::equal:
    case ElementwiseOp::not_equal:
    case ElementwiseOp::greater:
    case ElementwiseOp::greater_equal:
    case ElementwiseOp::less:
    case ElementwiseOp::less_equal:
      return true;
    default:
      return false;
  }
}

template <typename H>
BlockFn find_half_block(ElementwiseOp op, unsigned scalar_mask) {
  using V = HalfVec<H>;
  switch (op) {
#define UNARY(name, ...)                                                 \
  case ElementwiseOp::name:                                              \
    if constexpr (is_cheap(ElementwiseOp::name)) {                       \
      return unary_entry<InFloat<Value_##name>, V, ElementwiseOp::name>( \
          scalar_mask);                                                  \
    }                                                                    \
    return nullptr;
#define BINARY(name, ...)                                                 \
  case ElementwiseOp::name:                                               \
    if constexpr (is_cheap(ElementwiseOp::name)) {                        \
      return binary_entry<InFloat<Value_##name>, V, ElementwiseOp::name>( \
          scalar_mask);                                                   \
    }                                                                     \
    return nullptr;
#include "ops/elementwise.def"
    default:
      return nullptr;
  }
}

}  // namespace detail

BlockFn float16_block(ElementwiseOp op, unsigned scalar_mask) {
  return detail::find_half_block<float16_t>(op, scalar_mask);
}
BlockFn bfloat16_block(ElementwiseOp op, unsigned scalar_mask) {
  return detail::find_half_block<bfloat16_t>(op, scalar_mask);
}

}  // namespace mlx::core::cpu::MLX_ISA
