// Conversions from signed integers.
#include "backend/cuda/elementwise_convert.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_conversion_from<int8_t>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<int16_t>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<int32_t>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<int64_t>(Dtype to);

}  // namespace mlx::core::cuda
