// Conversions from unsigned integers.
#include "backend/cuda/elementwise_convert.cuh"

namespace mlx::core::cuda {

template ElementwiseKernel<1> find_conversion_from<uint8_t>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<uint16_t>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<uint32_t>(Dtype to);
template ElementwiseKernel<1> find_conversion_from<uint64_t>(Dtype to);

}  // namespace mlx::core::cuda
