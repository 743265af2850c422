// Where the executor finds the kernels of elementwise operations: one compile
// unit for each element type, and which type and operation stand for others.
#pragma once

#include "backend/cuda/elementwise_kernel.cuh"
#include "ops/elementwise_op.h"

namespace mlx::core::cuda {

template <typename T>
inline constexpr Dtype dtype_of_v = bool_;
template <>
inline constexpr Dtype dtype_of_v<uint8_t> = uint8;
template <>
inline constexpr Dtype dtype_of_v<uint16_t> = uint16;
template <>
inline constexpr Dtype dtype_of_v<uint32_t> = uint32;
template <>
inline constexpr Dtype dtype_of_v<uint64_t> = uint64;
template <>
inline constexpr Dtype dtype_of_v<int8_t> = int8;
template <>
inline constexpr Dtype dtype_of_v<int16_t> = int16;
template <>
inline constexpr Dtype dtype_of_v<int32_t> = int32;
template <>
inline constexpr Dtype dtype_of_v<int64_t> = int64;
template <>
inline constexpr Dtype dtype_of_v<half> = float16;
template <>
inline constexpr Dtype dtype_of_v<float> = float32;
template <>
inline constexpr Dtype dtype_of_v<double> = float64;
template <>
inline constexpr Dtype dtype_of_v<bhalf> = bfloat16;
template <>
inline constexpr Dtype dtype_of_v<complex64> = ::mlx::core::complex64;

/// What is launched for an operation on a type.
struct Canonical {
  ElementwiseOp op;
  Dtype::Val type;
  constexpr bool operator==(const Canonical&) const = default;
};

/// The unsigned integer as wide, for signed ones.
constexpr Dtype::Val unsigned_of(Dtype::Val t) {
  switch (t) {
    case Dtype::Val::int8:
      return Dtype::Val::uint8;
    case Dtype::Val::int16:
      return Dtype::Val::uint16;
    case Dtype::Val::int32:
      return Dtype::Val::uint32;
    case Dtype::Val::int64:
      return Dtype::Val::uint64;
    default:
      return t;
  }
}

/// Whole numbers have nothing to round, real ones nothing to conjugate, and
/// where the sign does not matter signed integers are taken as unsigned.
constexpr Canonical canonical(ElementwiseOp op, Dtype t) {
  bool whole = t.val() < Dtype::Val::float16;
  switch (op) {
    case ElementwiseOp::ceil:
    case ElementwiseOp::floor:
    case ElementwiseOp::round:
    case ElementwiseOp::trunc:
      op = whole ? ElementwiseOp::real : op;
      break;
    case ElementwiseOp::conjugate:
      op = t.val() != Dtype::Val::complex64 ? ElementwiseOp::real : op;
      break;
    case ElementwiseOp::equal_nan:
      op = whole ? ElementwiseOp::equal : op;
      break;
    default:
      break;
  }
  switch (op) {
    case ElementwiseOp::abs:
    case ElementwiseOp::sign:
    case ElementwiseOp::floor_divide:
    case ElementwiseOp::remainder:
    case ElementwiseOp::power:
    case ElementwiseOp::maximum:
    case ElementwiseOp::minimum:
    case ElementwiseOp::greater:
    case ElementwiseOp::greater_equal:
    case ElementwiseOp::less:
    case ElementwiseOp::less_equal:
    case ElementwiseOp::right_shift:
      return {op, t.val()};
    default:
      return {op, unsigned_of(t.val())};
  }
}

/// The kernel of a row for operands of type T; without function when the table
/// has none or `canonical` names another.
template <typename T>
ElementwiseKernel<1> find_unary(ElementwiseOp op);
template <typename T>
ElementwiseKernel<2> find_binary(ElementwiseOp op);

/// select moves bits only: by the size of elements.
ElementwiseKernel<3> find_select(size_t itemsize);

/// Conversion between two types.
ElementwiseKernel<1> find_conversion(Dtype from, Dtype to);

}  // namespace mlx::core::cuda
