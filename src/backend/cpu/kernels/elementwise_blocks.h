// Turns the rows of ops/elementwise.def into block routines for one element
// type. Included by the elementwise_<type>.cpp files, so that each type is a
// translation unit of its own, and by chain.cpp.
#pragma once

#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/simd/math.h"

namespace mlx::core::cpu::MLX_ISA {

// One functor per row, generic in the vector type.
#define UNARY(name, Class, accepts, result, value, ...) \
  struct Value_##name {                                 \
    template <typename T>                               \
    static MLX_INLINE auto of(T x) {                    \
      return value;                                     \
    }                                                   \
  };
#define BINARY(name, Class, accepts, result, value, ...) \
  struct Value_##name {                                  \
    template <typename T>                                \
    static MLX_INLINE auto of(T a, T b) {                \
      return value;                                      \
    }                                                    \
  };
#include "ops/elementwise.def"

namespace detail {

// Stores what a row gives: lanes, a mask as bool bytes, or one number.
template <typename T>
MLX_INLINE void put(Vec<T> x, void* out, size_t i) {
  x.store(static_cast<T*>(out) + i);
}
template <typename T>
MLX_INLINE void put(Vec<T> x, void* out, size_t i, size_t count) {
  x.store_partial(static_cast<T*>(out) + i, count);
}
template <int Bytes>
MLX_INLINE void put(Mask<Bytes> m, void* out, size_t i) {
  store_bools(m, static_cast<char*>(out) + i);
}
template <int Bytes>
MLX_INLINE void put(Mask<Bytes> m, void* out, size_t i, size_t count) {
  char bytes[kVecBytes / Bytes];
  store_bools(m, bytes);
  __builtin_memcpy(static_cast<char*>(out) + i, bytes, count);
}
MLX_INLINE void put(Complex x, void* out, size_t i) {
  static_cast<Complex*>(out)[i] = x;
}
MLX_INLINE void put(float x, void* out, size_t i) {
  static_cast<float*>(out)[i] = x;
}
MLX_INLINE void put(bool x, void* out, size_t i) {
  static_cast<bool*>(out)[i] = x;
}
MLX_INLINE void put(int x, void* out, size_t i) {
  static_cast<bool*>(out)[i] = x != 0;
}

template <typename Op, typename V>
void unary_block(const void* const* in, void* out, size_t n) {
  using T = typename V::Element;
  const T* x = static_cast<const T*>(in[0]);
  size_t i = 0;
  for (; i + V::size <= n; i += V::size) {
    put(Op::of(V::load(x + i)), out, i);
  }
  if constexpr (V::size > 1) {
    if (i < n) {
      put(Op::of(V::load_partial(x + i, n - i)), out, i, n - i);
    }
  }
}

/// An operand of a block: the array itself, or a vector full of the scalar.
template <typename V, bool Scalar>
struct Operand {
  using T = typename V::Element;
  static constexpr size_t step = Scalar ? 0 : V::size;
  alignas(64) T lanes[Scalar ? V::size : 1];
  const T* data;

  MLX_INLINE explicit Operand(const void* in)
      : data(static_cast<const T*>(in)) {
    if constexpr (Scalar) {
      T value = *data;
      for (T& lane : lanes) {
        lane = value;
      }
      data = lanes;
    }
  }
};

// One element for the whole block: computed once, stored n times.
template <typename Op, typename V, size_t ResultSize>
void unary_scalar_block(const void* const* in, void* out, size_t n) {
  alignas(8) char value[8];
  unary_block<Op, V>(in, value, 1);
  gather_block(value, 0, out, n, ResultSize);
}

// One loop serves arrays and scalars: a scalar is a full vector read again and
// again with step 0.
template <typename Op, typename V>
[[gnu::noinline]] void binary_loop(
    const typename V::Element* a,
    size_t step_a,
    const typename V::Element* b,
    size_t step_b,
    void* out,
    size_t n) {
  size_t i = 0;
  for (; i + V::size <= n; i += V::size, a += step_a, b += step_b) {
    put(Op::of(V::load(a), V::load(b)), out, i);
  }
  if constexpr (V::size > 1) {
    if (i < n) {
      size_t rest = n - i;
      put(Op::of(V::load_partial(a, rest), V::load_partial(b, rest)),
          out,
          i,
          rest);
    }
  }
}

// Powers with one exponent for all: the common ones need no logarithm.
struct Cube {
  template <typename T>
  static MLX_INLINE T of(T x) {
    return x * x * x;
  }
};
struct Root {
  template <typename T>
  static MLX_INLINE Vec<T> of(Vec<T> x) {
    // Unlike sqrt, C's pow gives +0 at -0 and infinity at -infinity.
    constexpr T kInfinity = __builtin_inf();
    Vec<T> root = math::sqrt(x + Vec<T>(0));
    return math::select(x == Vec<T>(-kInfinity), Vec<T>(kInfinity), root);
  }
};

/// The routine of x to the power of `exponent`, null when it has none.
template <typename V>
BlockFn special_power(typename V::Element exponent) {
  using T = typename V::Element;
  if (exponent == T(2)) {
    return &unary_block<Value_square, V>;
  }
  if (exponent == T(3)) {
    return &unary_block<Cube, V>;
  }
  if constexpr (V::size > 1) {
    return exponent == T(0.5) ? &unary_block<Root, V> : nullptr;
  }
  return nullptr;
}

template <typename T>
inline constexpr bool is_inexact = is_real<T>;
template <>
inline constexpr bool is_inexact<Complex> = true;

template <typename Op>
inline constexpr bool is_power = false;
template <>
inline constexpr bool is_power<Value_power> = true;

template <typename Op, typename V, unsigned Scalars>
void binary_block(const void* const* in, void* out, size_t n) {
  using T = typename V::Element;
  if constexpr (is_power<Op> && Scalars == 2 && is_inexact<T>) {
    if (auto fn = special_power<V>(*static_cast<const T*>(in[1]))) {
      return fn(in, out, n);
    }
  }
  Operand<V, (Scalars & 1) != 0> a(in[0]);
  Operand<V, (Scalars & 2) != 0> b(in[1]);
  binary_loop<Op, V>(a.data, a.step, b.data, b.step, out, n);
}

template <typename V>
[[gnu::noinline]] void select_loop(
    const void* condition,
    size_t step_condition,
    const typename V::Element* b,
    size_t step_b,
    const typename V::Element* c,
    size_t step_c,
    void* out,
    size_t n) {
  const char* bytes = static_cast<const char*>(condition);
  size_t i = 0;
  for (; i + V::size <= n; i += V::size) {
    auto m = load_bools<sizeof(typename V::Element)>(bytes);
    put(math::select(m, V::load(b), V::load(c)), out, i);
    bytes += step_condition;
    b += step_b;
    c += step_c;
  }
  if (i < n) {
    size_t rest = n - i;
    char last[V::size] = {};
    __builtin_memcpy(last, bytes, rest);
    auto m = load_bools<sizeof(typename V::Element)>(last);
    put(math::select(m, V::load_partial(b, rest), V::load_partial(c, rest)),
        out,
        i,
        rest);
  }
}

template <typename V, unsigned Scalars>
void select_block(const void* const* in, void* out, size_t n) {
  constexpr bool kScalarCondition = (Scalars & 1) != 0;
  uint8_t full[V::size];
  const void* condition = in[0];
  if constexpr (kScalarCondition) {
    __builtin_memset(full, *static_cast<const uint8_t*>(in[0]), V::size);
    condition = full;
  }
  Operand<V, (Scalars & 2) != 0> b(in[1]);
  Operand<V, (Scalars & 4) != 0> c(in[2]);
  select_loop<V>(
      condition,
      kScalarCondition ? 0 : V::size,
      b.data,
      b.step,
      c.data,
      c.step,
      out,
      n);
}

template <typename T>
inline constexpr Dtype dtype_of = bool_;
template <>
inline constexpr Dtype dtype_of<uint8_t> = uint8;
template <>
inline constexpr Dtype dtype_of<uint16_t> = uint16;
template <>
inline constexpr Dtype dtype_of<uint32_t> = uint32;
template <>
inline constexpr Dtype dtype_of<uint64_t> = uint64;
template <>
inline constexpr Dtype dtype_of<int8_t> = int8;
template <>
inline constexpr Dtype dtype_of<int16_t> = int16;
template <>
inline constexpr Dtype dtype_of<int32_t> = int32;
template <>
inline constexpr Dtype dtype_of<int64_t> = int64;
template <>
inline constexpr Dtype dtype_of<float> = float32;
template <>
inline constexpr Dtype dtype_of<double> = float64;
template <>
inline constexpr Dtype dtype_of<Complex> = complex64;

/// Whether the table lets `op` compute in T.
template <typename T>
constexpr bool computes(ElementwiseOp op) {
  constexpr Dtype t = dtype_of<T>;
  return elementwise_accepts(op, t) && elementwise_operand_dtype(op, t) == t;
}

template <typename Op, typename V, ElementwiseOp Row>
constexpr BlockFn unary_entry(unsigned scalar_mask) {
  if constexpr (computes<typename V::Element>(Row)) {
    constexpr size_t kResultSize =
        elementwise_result_dtype(Row, dtype_of<typename V::Element>).size();
    constexpr BlockFn table[2] = {
        &unary_block<Op, V>, &unary_scalar_block<Op, V, kResultSize>};
    return scalar_mask < 2 ? table[scalar_mask] : nullptr;
  }
  return nullptr;
}

template <typename Op, typename V, ElementwiseOp Row>
constexpr BlockFn binary_entry(unsigned scalar_mask) {
  if constexpr (computes<typename V::Element>(Row)) {
    constexpr BlockFn table[4] = {
        &binary_block<Op, V, 0>,
        &binary_block<Op, V, 1>,
        &binary_block<Op, V, 2>,
        &binary_block<Op, V, 3>};
    return scalar_mask < 4 ? table[scalar_mask] : nullptr;
  }
  return nullptr;
}

}  // namespace detail

/// select moves bits only: one routine per element size, for unsigned V.
template <typename V>
BlockFn find_select(unsigned scalar_mask) {
  constexpr BlockFn table[8] = {
      &detail::select_block<V, 0>,
      &detail::select_block<V, 1>,
      &detail::select_block<V, 2>,
      &detail::select_block<V, 3>,
      &detail::select_block<V, 4>,
      &detail::select_block<V, 5>,
      &detail::select_block<V, 6>,
      &detail::select_block<V, 7>};
  return scalar_mask < 8 ? table[scalar_mask] : nullptr;
}

/// The routine of a unary or binary row for vectors V.
template <typename V>
BlockFn find_block(ElementwiseOp op, unsigned scalar_mask) {
  switch (op) {
#define UNARY(name, ...)                                              \
  case ElementwiseOp::name:                                           \
    return detail::unary_entry<Value_##name, V, ElementwiseOp::name>( \
        scalar_mask);
#define BINARY(name, ...)                                              \
  case ElementwiseOp::name:                                            \
    return detail::binary_entry<Value_##name, V, ElementwiseOp::name>( \
        scalar_mask);
#include "ops/elementwise.def"
    default:
      return nullptr;
  }
}

// The look-ups of the translation units.
BlockFn bool_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn uint8_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn uint16_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn uint32_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn uint64_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn int8_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn int16_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn int32_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn int64_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn float32_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn float64_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn complex64_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn float16_block(ElementwiseOp op, unsigned scalar_mask);
BlockFn bfloat16_block(ElementwiseOp op, unsigned scalar_mask);

}  // namespace mlx::core::cpu::MLX_ISA
