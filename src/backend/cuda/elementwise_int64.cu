// Elementwise kernels for the 64-bit integers.
#include "backend/cuda/elementwise_rows.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_unary<int64_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<int64_t>(ElementwiseOp op);
template ElementwiseKernel<1> find_unary<uint64_t>(ElementwiseOp op);
template ElementwiseKernel<2> find_binary<uint64_t>(ElementwiseOp op);

}  // namespace mlx::core::cuda
