// Elementwise kernels for the 8-bit integers.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<int8_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<int8_t>(ElementwiseOp op);
template ElementwiseKernel<1> find_unary<uint8_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<uint8_t>(ElementwiseOp op);

}  // namespace mlx::core::cuda
