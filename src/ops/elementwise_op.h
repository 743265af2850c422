// Identity and traits of the elementwise operations, generated from the table
// in elementwise.def (its head explains the words).
#pragma once

#include <cstdint>

#include "mlx/dtype.h"

namespace mlx::core {

enum class ElementwiseOp : uint8_t {
#define UNARY(name, ...) name,
#define BINARY(name, ...) name,
#define TERNARY(name, ...) name,
#include "ops/elementwise.def"
};

inline constexpr int kNumElementwiseOps = 0
#define UNARY(...) +1
#define BINARY(...) +1
#define TERNARY(...) +1
#include "ops/elementwise.def"
    ;

/// Which operand types an operation takes.
enum class ElementwiseAccepts : uint8_t { all, number, real, integral };

/// How the types of computation and result follow from the operands'.
enum class ElementwiseResult : uint8_t {
  keep,
  to_float,
  bool_,
  real_part,
  shift,
};

struct ElementwiseInfo {
  const char* name;        ///< the public function, e.g. "expm1"
  const char* class_name;  ///< the primitive, e.g. "Expm1"
  int arity;
  ElementwiseAccepts accepts;
  ElementwiseResult result;
  const char* value;  ///< the text of the formula, for generated code
  const char* summary;
};

inline constexpr ElementwiseInfo kElementwiseTable[] = {
#define MLX_ROW(name, Class, arity, accepts, result, value, summary) \
  {#name,                                                            \
   #Class,                                                           \
   arity,                                                            \
   ElementwiseAccepts::accepts,                                      \
   ElementwiseResult::result,                                        \
   #value,                                                           \
   summary},
#define UNARY(name, Class, accepts, result, value, tangent, summary) \
  MLX_ROW(name, Class, 1, accepts, result, value, summary)
#define BINARY(name, Class, accepts, result, value, ta, tb, summary) \
  MLX_ROW(name, Class, 2, accepts, result, value, summary)
#define TERNARY(name, Class, accepts, result, value, ta, tb, tc, summary) \
  MLX_ROW(name, Class, 3, accepts, result, value, summary)
#include "ops/elementwise.def"
#undef MLX_ROW
};

constexpr const ElementwiseInfo& elementwise_info(ElementwiseOp op) {
  return kElementwiseTable[static_cast<int>(op)];
}

/// Whether the operation takes operands of (promoted) type `t`.
constexpr bool elementwise_accepts(ElementwiseOp op, Dtype t) {
  switch (elementwise_info(op).accepts) {
    case ElementwiseAccepts::all:
      return true;
    case ElementwiseAccepts::number:
      return t.val() != Dtype::Val::bool_;
    case ElementwiseAccepts::real:
      return t.val() != Dtype::Val::complex64;
    case ElementwiseAccepts::integral:
      return t.val() < Dtype::Val::float16;
  }
  return false;
}

/// The type operands of (promoted) type `t` are cast to before computing.
/// For float16 and bfloat16 kernels widen to float32 inside.
constexpr Dtype elementwise_operand_dtype(ElementwiseOp op, Dtype t) {
  auto result = elementwise_info(op).result;
  bool integral = t.val() < Dtype::Val::float16;
  if (result == ElementwiseResult::to_float && integral) {
    return float32;
  }
  if (result == ElementwiseResult::shift && t.val() == Dtype::Val::bool_) {
    return uint8;
  }
  return t;
}

/// The type of the result for operands of (promoted) type `t`.
constexpr Dtype elementwise_result_dtype(ElementwiseOp op, Dtype t) {
  auto result = elementwise_info(op).result;
  if (result == ElementwiseResult::bool_) {
    return bool_;
  }
  if (result == ElementwiseResult::real_part &&
      t.val() == Dtype::Val::complex64) {
    return float32;
  }
  return elementwise_operand_dtype(op, t);
}

}  // namespace mlx::core
