// Conversions from complex64.
#include "backend/cuda/elementwise_convert.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_conversion_from<complex64>(Dtype to);

}  // namespace mlx::core::cuda
