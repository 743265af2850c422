// Elementwise kernels for bool.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<bool>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<bool>(ElementwiseOp op);

}  // namespace mlx::core::cuda
