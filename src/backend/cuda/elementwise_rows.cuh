// Turns the rows of ops/elementwise.def into kernels for one element type.
// Included by the elementwise_<type>.cu files only, so that each type is a
// translation unit of its own.
#pragma once

#include "backend/cuda/device/math_complex.cuh"
#include "backend/cuda/elementwise_find.h"
#include "backend/cuda/elementwise_flat.cuh"

namespace mlx::core::cuda {

namespace detail {

/// The formula of a row, generic in the type.
template <ElementwiseOp op>
struct Formula;
#define UNARY(name, Class, accepts, result, value, ...) \
  template <>                                           \
  struct Formula<ElementwiseOp::name> {                 \
    template <typename T>                               \
    static __device__ __forceinline__ auto of(T x) {    \
      return value;                                     \
    }                                                   \
  };
#define BINARY(name, Class, accepts, result, value, ...)  \
  template <>                                             \
  struct Formula<ElementwiseOp::name> {                   \
    template <typename T>                                 \
    static __device__ __forceinline__ auto of(T a, T b) { \
      return value;                                       \
    }                                                     \
  };
#include "ops/elementwise.def"

// From what memory holds to what formulas are computed in, and back.
template <typename T>
__device__ __forceinline__ auto lift(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return Truth(x);
  } else {
    return to_compute(x);
  }
}
template <typename To, typename T>
__device__ __forceinline__ To lower(T x) {
  if constexpr (is_half_v<To>) {
    return convert<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

constexpr Weight weight_of(ElementwiseOp op) {
  using enum ElementwiseOp;
  for (ElementwiseOp medium : {expm1, log, sigmoid, erf, tanh}) {
    if (op == medium) {
      return Weight::medium;
    }
  }
  for (ElementwiseOp heavy :
       {log2,    log10,        log1p,     erfinv, sin,       cos,     tan,
        arcsin,  arccos,       arctan,    sinh,   cosh,      arcsinh, arccosh,
        arctanh, floor_divide, remainder, power,  logaddexp, arctan2}) {
    if (op == heavy) {
      return Weight::heavy;
    }
  }
  return Weight::light;
}

template <Dtype::Val result, typename T>
using ResultOf = std::conditional_t<
    result == Dtype::Val::bool_,
    bool,
    std::conditional_t<
        is_complex_v<T> && result == Dtype::Val::float32,
        float,
        T>>;

template <ElementwiseOp op, typename T>
struct TableRow {
  static constexpr int arity = elementwise_info(op).arity;
  using First = T;
  using Other = T;
  using Result = ResultOf<elementwise_result_dtype(op, dtype_of_v<T>).val(), T>;

  static constexpr Weight weight = weight_of(op);
  static constexpr bool light = weight == Weight::light;
  static constexpr int most = pack_size_v<T>;
  static constexpr int pack = light || most < 4 ? most : 4;
  static constexpr int group = light ? 4 : 1;
  static constexpr int flat_packs =
      flat_packs_of(arity, pack, sizeof(T), weight);
  static constexpr int flat_blocks = flat_blocks_of(pack, weight);

  template <typename... Operands>
  static __device__ __forceinline__ Result of(Operands... x) {
    return lower<Result>(Formula<op>::of(lift(x)...));
  }
};

/// Whether there is a kernel for operands of type T: the table allows it, and
/// the operation is not done by that of another type or name.
template <typename T>
constexpr bool is_built(ElementwiseOp op) {
  constexpr Dtype t = dtype_of_v<T>;
  return elementwise_accepts(op, t) && elementwise_operand_dtype(op, t) == t &&
         canonical(op, t) == Canonical{op, t.val()};
}

}  // namespace detail

template <typename T>
ElementwiseKernel<1> find_unary(ElementwiseOp op) {
  switch (op) {
#define UNARY(name, ...)                                      \
  case ElementwiseOp::name:                                   \
    if constexpr (detail::is_built<T>(ElementwiseOp::name)) { \
      return elementwise_kernel_of<                           \
          detail::TableRow<ElementwiseOp::name, T>>();        \
    }                                                         \
    break;
#include "ops/elementwise.def"
    default:
      break;
  }
  return {};
}

template <typename T>
ElementwiseKernel<2> find_binary(ElementwiseOp op) {
  switch (op) {
#define BINARY(name, ...)                                     \
  case ElementwiseOp::name:                                   \
    if constexpr (detail::is_built<T>(ElementwiseOp::name)) { \
      return elementwise_kernel_of<                           \
          detail::TableRow<ElementwiseOp::name, T>>();        \
    }                                                         \
    break;
#include "ops/elementwise.def"
    default:
      break;
  }
  return {};
}

}  // namespace mlx::core::cuda
