// Conversions from real floating types.
#include "backend/cuda/elementwise_convert.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_conversion_from<half>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<bhalf>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<float>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<double>(Dtype to);

}  // namespace mlx::core::cuda
