// Elementwise kernels for complex64.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<complex64>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<complex64>(ElementwiseOp op);

}  // namespace mlx::core::cuda
