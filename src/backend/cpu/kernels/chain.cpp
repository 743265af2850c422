// The stages behind chain.h, generated from the table of operations.
#include "backend/cpu/kernels/chain.h"

#include "backend/cpu/kernels/chain_stage.h"
#include "backend/cpu/kernels/elementwise_blocks.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename T>
MLX_STAGE(load) {
  const T* p = operand<T>(s, i);
  prefetch(p, s->ahead);
  a = load_as<float>(p);
  b = load_as<float>(p + V::size);
  c = load_as<float>(p + 2 * V::size);
  d = load_as<float>(p + 3 * V::size);
  MLX_NEXT(s + 1);
}

MLX_STAGE(load_scalar) {
  a = b = c = d = V(*static_cast<const float*>(s->at));
  MLX_NEXT(s + 1);
}

MLX_STAGE(load_bool) {
  const char* p = operand<char>(s, i);
  a = lanes(load_bools<4>(p));
  b = lanes(load_bools<4>(p + V::size));
  c = lanes(load_bools<4>(p + 2 * V::size));
  d = lanes(load_bools<4>(p + 3 * V::size));
  MLX_NEXT(s + 1);
}

template <typename T>
MLX_STAGE(store) {
  T* p = const_cast<T*>(operand<T>(s, i));
  store_as(a, p);
  store_as(b, p + V::size);
  store_as(c, p + 2 * V::size);
  store_as(d, p + 3 * V::size);
  MLX_NEXT(s + 1);
}

/// Stores what `narrow` makes of the vectors.
template <auto narrow>
MLX_STAGE(stream) {
  char* p = const_cast<char*>(operand<char>(s, i));
  constexpr size_t kBytes = sizeof(narrow(a));
  stream_bytes(narrow(a), p);
  stream_bytes(narrow(b), p + kBytes);
  stream_bytes(narrow(c), p + 2 * kBytes);
  stream_bytes(narrow(d), p + 3 * kBytes);
  MLX_NEXT(s + 1);
}

MLX_INLINE V::RawT same(V x) {
  return x.v;
}

MLX_STAGE(store_bool) {
  char* p = const_cast<char*>(operand<char>(s, i));
  store_bools(mask(a), p);
  store_bools(mask(b), p + V::size);
  store_bools(mask(c), p + 2 * V::size);
  store_bools(mask(d), p + 3 * V::size);
  MLX_NEXT(s + 1);
}

/// fn of one vector or of a vector and the operand in memory.
template <auto fn>
MLX_STAGE(one_operand) {
  a = lanes(fn(a));
  b = lanes(fn(b));
  c = lanes(fn(c));
  d = lanes(fn(d));
  MLX_NEXT(s + 1);
}

/// Whether no magnitude is greater than `most`, nor any a NaN.
MLX_INLINE bool are_within(float most, V a, V b, V c, V d) {
  using I = Vec<int32_t>;
  auto bits = [](V x) { return bitcast<int32_t>(abs(x)); };
  I highest =
      max_native(max_native(bits(a), bits(b)), max_native(bits(c), bits(d)));
  return !any(highest > bitcast<int32_t>(V(most)));
}

/// Exponentials, a third of whose work is for results that are not normal
/// numbers: without these one step scales by the power of two, bit for bit.
MLX_STAGE(exponentials) {
  if (are_within(87.0f, a, b, c, d)) {
    auto exp = [](V x) {
      auto [n, r] = math::detail::reduce_exp(x);
      V p = V(1.0f) + math::detail::expm1_reduced(r);
      return bitcast<float>(bitcast<int32_t>(p) + (round_to_int(n) << 23));
    };
    a = exp(a);
    b = exp(b);
    c = exp(c);
    d = exp(d);
  } else {
    a = math::exp(a);
    b = math::exp(b);
    c = math::exp(c);
    d = math::exp(d);
  }
  MLX_NEXT(s + 1);
}

/// A row of the table as a function of vectors.
template <typename Op>
MLX_INLINE auto unary(V x) {
  return Op::of(x);
}
template <typename Op>
MLX_INLINE auto binary(V x, V y) {
  return Op::of(x, y);
}
template <typename Op>
MLX_INLINE auto swapped_binary(V x, V y) {
  return Op::of(y, x);
}

template <auto fn>
inline constexpr bool divides = false;
template <>
inline constexpr bool divides<&binary<Value_divide>> = true;

/// The two operands of a binary stage, one of them in registers.
template <auto fn, bool Scalar>
MLX_INLINE void apply(const ChainStage* s, size_t i, V& a, V& b, V& c, V& d) {
  if constexpr (Scalar) {
    float number = *static_cast<const float*>(s->at);
    if constexpr (divides<fn>) {
      if (float inverse = exact_inverse(number); inverse != 0.0f) {
        a = a * V(inverse);
        b = b * V(inverse);
        c = c * V(inverse);
        d = d * V(inverse);
        return;
      }
    }
    V y(number);
    a = lanes(fn(a, y));
    b = lanes(fn(b, y));
    c = lanes(fn(c, y));
    d = lanes(fn(d, y));
  } else {
    const float* y = operand<float>(s, i);
    a = lanes(fn(a, V::load(y)));
    b = lanes(fn(b, V::load(y + V::size)));
    c = lanes(fn(c, V::load(y + 2 * V::size)));
    d = lanes(fn(d, V::load(y + 3 * V::size)));
  }
}

template <auto fn, bool Scalar>
MLX_STAGE(two_operands) {
  apply<fn, Scalar>(s, i, a, b, c, d);
  MLX_NEXT(s + 1);
}

template <auto fn, bool Scalar>
MLX_STAGE(load_and_apply) {
  const float* p = operand<float>(s, i);
  prefetch(p, s->ahead);
  a = V::load(p);
  b = V::load(p + V::size);
  c = V::load(p + 2 * V::size);
  d = V::load(p + 3 * V::size);
  apply<fn, Scalar>(s + 1, i, a, b, c, d);
  MLX_NEXT(s + 2);
}

template <auto fn, bool Scalar, bool Streaming>
MLX_STAGE(apply_and_store) {
  apply<fn, Scalar>(s, i, a, b, c, d);
  float* p = const_cast<float*>(operand<float>(s + 1, i));
  if constexpr (Streaming) {
    stream_bytes(a.v, p);
    stream_bytes(b.v, p + V::size);
    stream_bytes(c.v, p + 2 * V::size);
    stream_bytes(d.v, p + 3 * V::size);
  } else {
    a.store(p);
    b.store(p + V::size);
    c.store(p + 2 * V::size);
    d.store(p + 3 * V::size);
  }
  MLX_NEXT(s + 2);
}

template <bool Scalar>
MLX_INLINE V element(const ChainStage* s, size_t i, size_t k) {
  if constexpr (Scalar) {
    return V(*static_cast<const float*>(s->at));
  }
  return V::load(operand<float>(s, i) + k * V::size);
}

template <bool ScalarB, bool ScalarC>
MLX_STAGE(choose) {
  auto pick = [&](V m, size_t k) {
    return select(
        mask(m), element<ScalarB>(s, i, k), element<ScalarC>(s + 1, i, k));
  };
  a = pick(a, 0);
  b = pick(b, 1);
  c = pick(c, 2);
  d = pick(d, 3);
  MLX_NEXT(s + 2);
}

MLX_STAGE(end) {
  i += 4 * V::size;
  if (i < s->stride && i % kRun != 0) {
    MLX_NEXT(static_cast<const ChainStage*>(s->at));
  }
}

MLX_INLINE V rounded_float16(V x) {
  return from_float16(to_float16(x));
}
// As to_bfloat16, but in place.
MLX_INLINE V rounded_bfloat16(V x) {
  using U = Vec<uint32_t>;
  U bits = bitcast<uint32_t>(x);
  U rounded = bits + ((bits >> 16) & U(1u)) + U(0x7fffu);
  U result = select(x != x, bits | U(0x400000u), rounded);
  return bitcast<float>(result & U(0xffff0000u));
}
MLX_INLINE V zero_or_one(V m) {
  return select(mask(m), V(1.0f), V(0.0f));
}
MLX_INLINE Mask<4> is_nonzero(V x) {
  return x != V(0.0f);
}
MLX_INLINE Mask<4> mask_not(V m) {
  return !mask(m);
}
MLX_INLINE Mask<4> mask_and(V m, V n) {
  return mask(m) & mask(n);
}
MLX_INLINE Mask<4> mask_or(V m, V n) {
  return mask(m) | mask(n);
}

template <auto fn, bool Scalar>
ChainFn joined_stage(ChainMove move) {
  switch (move) {
    case ChainMove::load_float32:
      return erased(&load_and_apply<fn, Scalar>);
    case ChainMove::store_float32:
      return erased(&apply_and_store<fn, Scalar, false>);
    case ChainMove::stream_float32:
      return erased(&apply_and_store<fn, Scalar, true>);
    default:
      return nullptr;
  }
}

template <typename Op>
ChainFn joined_stage(bool scalar, bool swapped, ChainMove move) {
  if (scalar) {
    return swapped ? joined_stage<&swapped_binary<Op>, true>(move)
                   : joined_stage<&binary<Op>, true>(move);
  }
  return swapped ? joined_stage<&swapped_binary<Op>, false>(move)
                 : joined_stage<&binary<Op>, false>(move);
}

template <auto fn, auto swapped_fn>
ChainFn binary_stage(bool scalar, bool swapped) {
  if (scalar) {
    return swapped ? erased(&two_operands<swapped_fn, true>)
                   : erased(&two_operands<fn, true>);
  }
  return swapped ? erased(&two_operands<swapped_fn, false>)
                 : erased(&two_operands<fn, false>);
}

// Dear functions of two operands gain nothing here, and powers have short cuts
// that depend on the exponent.
constexpr bool is_light(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::power:
    case ElementwiseOp::floor_divide:
    case ElementwiseOp::remainder:
    case ElementwiseOp::logaddexp:
    case ElementwiseOp::arctan2:
      return false;
    default:
      return detail::computes<float>(op);
  }
}

template <typename Op, ElementwiseOp row>
ChainFn unary_entry() {
  if constexpr (row == ElementwiseOp::exp) {
    return erased(&exponentials);
  } else if constexpr (detail::computes<float>(row)) {
    return erased(&one_operand<&unary<Op>>);
  }
  return nullptr;
}
template <typename Op, ElementwiseOp row>
ChainFn binary_entry(bool scalar, bool swapped) {
  if constexpr (is_light(row)) {
    return binary_stage<&binary<Op>, &swapped_binary<Op>>(scalar, swapped);
  }
  return nullptr;
}

}  // namespace

size_t chain_group() {
  return 4 * V::size;
}

ChainFn chain_move(ChainMove move) {
  switch (move) {
    case ChainMove::load_scalar:
      return erased(&load_scalar);
    case ChainMove::load_float32:
      return erased(&load<float>);
    case ChainMove::load_float16:
      return erased(&load<float16_t>);
    case ChainMove::load_bfloat16:
      return erased(&load<bfloat16_t>);
    case ChainMove::load_bool:
      return erased(&load_bool);
    case ChainMove::store_float32:
      return erased(&store<float>);
    case ChainMove::store_float16:
      return erased(&store<float16_t>);
    case ChainMove::store_bfloat16:
      return erased(&store<bfloat16_t>);
    case ChainMove::store_bool:
      return erased(&store_bool);
    case ChainMove::stream_float32:
      return erased(&stream<&same>);
    case ChainMove::stream_float16:
      return erased(&stream<&to_float16>);
    case ChainMove::stream_bfloat16:
      return erased(&stream<&to_bfloat16>);
    case ChainMove::round_float16:
      return erased(&one_operand<&rounded_float16>);
    case ChainMove::round_bfloat16:
      return erased(&one_operand<&rounded_bfloat16>);
    case ChainMove::from_bool:
      return erased(&one_operand<&zero_or_one>);
    case ChainMove::to_bool:
      return erased(&one_operand<&is_nonzero>);
    case ChainMove::end:
      return erased(&end);
  }
  return nullptr;
}

ChainFn chain_unary(ElementwiseOp op, bool of_bool) {
  if (of_bool) {
    return op == ElementwiseOp::logical_not ? erased(&one_operand<&mask_not>)
                                            : nullptr;
  }
  switch (op) {
#define UNARY(name, ...)    \
  case ElementwiseOp::name: \
    return unary_entry<Value_##name, ElementwiseOp::name>();
#include "ops/elementwise.def"
    default:
      return nullptr;
  }
}

ChainFn chain_binary(
    ElementwiseOp op, bool of_bool, bool scalar, bool swapped) {
  if (of_bool) {
    return scalar ? nullptr
           : op == ElementwiseOp::logical_and
               ? erased(&two_operands<&mask_and, false>)
           : op == ElementwiseOp::logical_or
               ? erased(&two_operands<&mask_or, false>)
               : nullptr;
  }
  switch (op) {
#define BINARY(name, ...)   \
  case ElementwiseOp::name: \
    return binary_entry<Value_##name, ElementwiseOp::name>(scalar, swapped);
#include "ops/elementwise.def"
    default:
      return nullptr;
  }
}

ChainFn chain_joined(
    ElementwiseOp op, bool scalar, bool swapped, ChainMove move) {
  switch (op) {
    case ElementwiseOp::add:
      return joined_stage<Value_add>(scalar, swapped, move);
    case ElementwiseOp::subtract:
      return joined_stage<Value_subtract>(scalar, swapped, move);
    case ElementwiseOp::multiply:
      return joined_stage<Value_multiply>(scalar, swapped, move);
    case ElementwiseOp::divide:
      return joined_stage<Value_divide>(scalar, swapped, move);
    default:
      return nullptr;
  }
}

ChainFn chain_select(bool scalar_b, bool scalar_c) {
  if (scalar_b) {
    return scalar_c ? erased(&choose<true, true>)
                    : erased(&choose<true, false>);
  }
  return scalar_c ? erased(&choose<false, true>)
                  : erased(&choose<false, false>);
}

void run_chain(ChainStage* stages, size_t count, size_t n) {
  Stage first = reinterpret_cast<Stage>(stages->run);
  stages[count - 1].at = stages;
  stages[count - 1].stride = n;
  V zero(0.0f);
  for (size_t i = 0; i < n; i += kRun) {
    first(stages, i, zero, zero, zero, zero);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
