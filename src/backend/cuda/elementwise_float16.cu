// Elementwise kernels for float16.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<half>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<half>(ElementwiseOp op);

}  // namespace mlx::core::cuda
