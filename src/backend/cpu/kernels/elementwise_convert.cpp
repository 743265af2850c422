// Conversion of blocks between all element types. Pairs of integers, float32
// and float64 have loops of their own; float16, bfloat16 and complex64 go
// through float32 in pieces of 512 elements on the stack.
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/simd/math_complex.h"
#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

constexpr size_t kPiece = 512;

/// C's conversion, except that a float goes to a narrow or unsigned integer
/// through a signed one, so that negative numbers wrap instead of being
/// undefined.
template <typename To, typename From>
MLX_INLINE To convert_one(From x) {
  if constexpr (detail::is_real<From> && !detail::is_real<To>) {
    if constexpr (sizeof(To) < 4) {
      return static_cast<To>(static_cast<int32_t>(x));
    } else if constexpr (sizeof(To) == 4 && To(-1) > To(0)) {
      return static_cast<To>(static_cast<int64_t>(x));
    } else if constexpr (sizeof(To) == 8 && To(-1) > To(0)) {
      return x < 0 ? static_cast<To>(static_cast<int64_t>(x))
                   : static_cast<To>(x);
    }
  }
  return static_cast<To>(x);
}

template <typename From, typename To>
void convert_loop(const void* const* in, void* out, size_t n) {
  const From* x = static_cast<const From*>(in[0]);
  To* y = static_cast<To*>(out);
  for (size_t i = 0; i < n; ++i) {
    y[i] = convert_one<To>(x[i]);
  }
}

template <typename From>
void to_bool_loop(const void* const* in, void* out, size_t n) {
  const From* x = static_cast<const From*>(in[0]);
  uint8_t* y = static_cast<uint8_t*>(out);
  for (size_t i = 0; i < n; ++i) {
    y[i] = x[i] != From(0);
  }
}

template <int Size>
void copy_loop(const void* const* in, void* out, size_t n) {
  if (in[0] != out) {
    __builtin_memmove(out, in[0], n * Size);
  }
}

template <typename H>
void from_half_loop(const void* const* in, void* out, size_t n) {
  const H* x = static_cast<const H*>(in[0]);
  float* y = static_cast<float*>(out);
  size_t i = 0;
  for (; i + Vec<float>::size <= n; i += Vec<float>::size) {
    load_as<float>(x + i).store(y + i);
  }
  if (i < n) {
    load_partial_as<float>(x + i, n - i).store_partial(y + i, n - i);
  }
}

template <typename H>
void to_half_loop(const void* const* in, void* out, size_t n) {
  const float* x = static_cast<const float*>(in[0]);
  H* y = static_cast<H*>(out);
  size_t i = 0;
  for (; i + Vec<float>::size <= n; i += Vec<float>::size) {
    store_as(Vec<float>::load(x + i), y + i);
  }
  if (i < n) {
    store_partial_as(Vec<float>::load_partial(x + i, n - i), y + i, n - i);
  }
}

void from_complex_loop(const void* const* in, void* out, size_t n) {
  const Complex* x = static_cast<const Complex*>(in[0]);
  float* y = static_cast<float*>(out);
  for (size_t i = 0; i < n; ++i) {
    y[i] = x[i].re;
  }
}

void complex_to_bool_loop(const void* const* in, void* out, size_t n) {
  const Complex* x = static_cast<const Complex*>(in[0]);
  uint8_t* y = static_cast<uint8_t*>(out);
  for (size_t i = 0; i < n; ++i) {
    y[i] = (x[i].re != 0) | (x[i].im != 0);
  }
}

void to_complex_loop(const void* const* in, void* out, size_t n) {
  const float* x = static_cast<const float*>(in[0]);
  Complex* y = static_cast<Complex*>(out);
  for (size_t i = 0; i < n; ++i) {
    y[i] = Complex(x[i]);
  }
}

/// Two conversions one after the other, by way of float32.
template <BlockFn First, BlockFn Second, int FromSize, int ToSize>
void by_float(const void* const* in, void* out, size_t n) {
  alignas(64) float piece[kPiece];
  for (size_t i = 0; i < n; i += kPiece) {
    size_t count = n - i < kPiece ? n - i : kPiece;
    const void* source = static_cast<const char*>(in[0]) + i * FromSize;
    First(&source, piece, count);
    const void* middle = piece;
    Second(&middle, static_cast<char*>(out) + i * ToSize, count);
  }
}

// Integers of one size share the loops that only copy, extend or cut bits:
// what counts is the signedness of the source.
template <typename From>
BlockFn from_core(Dtype to) {
  switch (to.val()) {
    case Dtype::Val::bool_:
      return &to_bool_loop<From>;
    case Dtype::Val::uint8:
      return &convert_loop<From, uint8_t>;
    case Dtype::Val::uint16:
      return &convert_loop<From, uint16_t>;
    case Dtype::Val::uint32:
      return &convert_loop<From, uint32_t>;
    case Dtype::Val::uint64:
      return &convert_loop<From, uint64_t>;
    case Dtype::Val::int8:
      return detail::is_real<From> ? &convert_loop<From, int8_t>
                                   : &convert_loop<From, uint8_t>;
    case Dtype::Val::int16:
      return detail::is_real<From> ? &convert_loop<From, int16_t>
                                   : &convert_loop<From, uint16_t>;
    case Dtype::Val::int32:
      return detail::is_real<From> ? &convert_loop<From, int32_t>
                                   : &convert_loop<From, uint32_t>;
    case Dtype::Val::int64:
      return detail::is_real<From> ? &convert_loop<From, int64_t>
                                   : &convert_loop<From, uint64_t>;
    case Dtype::Val::float32:
      return &convert_loop<From, float>;
    case Dtype::Val::float64:
      return &convert_loop<From, double>;
    case Dtype::Val::float16:
      return &by_float<
          &convert_loop<From, float>,
          &to_half_loop<float16_t>,
          sizeof(From),
          2>;
    case Dtype::Val::bfloat16:
      return &by_float<
          &convert_loop<From, float>,
          &to_half_loop<bfloat16_t>,
          sizeof(From),
          2>;
    case Dtype::Val::complex64:
      return &by_float<
          &convert_loop<From, float>,
          &to_complex_loop,
          sizeof(From),
          8>;
  }
  return nullptr;
}

/// From float32 straight to the types that from_core reaches in two steps.
BlockFn from_float(Dtype to) {
  switch (to.val()) {
    case Dtype::Val::float32:
      return &copy_loop<4>;
    case Dtype::Val::float16:
      return &to_half_loop<float16_t>;
    case Dtype::Val::bfloat16:
      return &to_half_loop<bfloat16_t>;
    case Dtype::Val::complex64:
      return &to_complex_loop;
    default:
      return from_core<float>(to);
  }
}

/// From a type that First turns into float32.
template <BlockFn First, int FromSize>
BlockFn from_by_float(Dtype to) {
  switch (to.val()) {
    case Dtype::Val::bool_:
      return &by_float<First, &to_bool_loop<float>, FromSize, 1>;
    case Dtype::Val::uint8:
      return &by_float<First, &convert_loop<float, uint8_t>, FromSize, 1>;
    case Dtype::Val::uint16:
      return &by_float<First, &convert_loop<float, uint16_t>, FromSize, 2>;
    case Dtype::Val::uint32:
      return &by_float<First, &convert_loop<float, uint32_t>, FromSize, 4>;
    case Dtype::Val::uint64:
      return &by_float<First, &convert_loop<float, uint64_t>, FromSize, 8>;
    case Dtype::Val::int8:
      return &by_float<First, &convert_loop<float, int8_t>, FromSize, 1>;
    case Dtype::Val::int16:
      return &by_float<First, &convert_loop<float, int16_t>, FromSize, 2>;
    case Dtype::Val::int32:
      return &by_float<First, &convert_loop<float, int32_t>, FromSize, 4>;
    case Dtype::Val::int64:
      return &by_float<First, &convert_loop<float, int64_t>, FromSize, 8>;
    case Dtype::Val::float16:
      return &by_float<First, &to_half_loop<float16_t>, FromSize, 2>;
    case Dtype::Val::float32:
      return First;
    case Dtype::Val::float64:
      return &by_float<First, &convert_loop<float, double>, FromSize, 8>;
    case Dtype::Val::bfloat16:
      return &by_float<First, &to_half_loop<bfloat16_t>, FromSize, 2>;
    case Dtype::Val::complex64:
      return &by_float<First, &to_complex_loop, FromSize, 8>;
  }
  return nullptr;
}

BlockFn copy_of_size(size_t size) {
  switch (size) {
    case 1:
      return &copy_loop<1>;
    case 2:
      return &copy_loop<2>;
    case 4:
      return &copy_loop<4>;
    default:
      return &copy_loop<8>;
  }
}

}  // namespace

BlockFn convert_block(Dtype from, Dtype to) {
  if (from.val() == to.val()) {
    return copy_of_size(from.size());
  }
  switch (from.val()) {
    case Dtype::Val::bool_:
    case Dtype::Val::uint8:
      return from_core<uint8_t>(to);
    case Dtype::Val::uint16:
      return from_core<uint16_t>(to);
    case Dtype::Val::uint32:
      return from_core<uint32_t>(to);
    case Dtype::Val::uint64:
      return from_core<uint64_t>(to);
    case Dtype::Val::int8:
      return from_core<int8_t>(to);
    case Dtype::Val::int16:
      return from_core<int16_t>(to);
    case Dtype::Val::int32:
      return from_core<int32_t>(to);
    case Dtype::Val::int64:
      return from_core<int64_t>(to);
    case Dtype::Val::float32:
      return from_float(to);
    case Dtype::Val::float64:
      return from_core<double>(to);
    case Dtype::Val::float16:
      return from_by_float<&from_half_loop<float16_t>, 2>(to);
    case Dtype::Val::bfloat16:
      return from_by_float<&from_half_loop<bfloat16_t>, 2>(to);
    case Dtype::Val::complex64:
      return to.val() == Dtype::Val::bool_
                 ? &complex_to_bool_loop
                 : from_by_float<&from_complex_loop, 8>(to);
  }
  return nullptr;
}

}  // namespace mlx::core::cpu::MLX_ISA
