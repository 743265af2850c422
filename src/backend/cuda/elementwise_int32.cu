// Elementwise kernels for the 32-bit integers.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<int32_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<int32_t>(ElementwiseOp op);
template ElementwiseKernel<1> find_unary<uint32_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<uint32_t>(ElementwiseOp op);

}  // namespace mlx::core::cuda
