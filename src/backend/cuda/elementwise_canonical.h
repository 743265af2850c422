// Which type and operation stand for others, so that kernels are fewer.
#pragma once

#include "ops/elementwise_op.h"

namespace mlx::core::cuda {

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

}  // namespace mlx::core::cuda
