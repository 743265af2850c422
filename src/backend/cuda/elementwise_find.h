// Where the executor finds the kernels of elementwise operations: one compile
// unit for each element type.
#pragma once

#include "backend/cuda/elementwise_canonical.h"
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
