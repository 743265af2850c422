// Elementwise kernels for bfloat16.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<bhalf>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<bhalf>(ElementwiseOp op);

}  // namespace mlx::core::cuda
