// Elementwise kernels for float32.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<float>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<float>(ElementwiseOp op);

}  // namespace mlx::core::cuda
