// Elementwise kernels for the 16-bit integers.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<int16_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<int16_t>(ElementwiseOp op);
template ElementwiseKernel<1> find_unary<uint16_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<uint16_t>(ElementwiseOp op);

}  // namespace mlx::core::cuda
