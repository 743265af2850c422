// Elementwise kernels for float64.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<double>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<double>(ElementwiseOp op);

}  // namespace mlx::core::cuda
