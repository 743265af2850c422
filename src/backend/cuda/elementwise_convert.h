// Which kernels of conversion there are: sources and targets that share bits
// share kernels.
#pragma once

#include "backend/cuda/elementwise_find.h"

namespace mlx::core::cuda {

/// The conversions of one source type; defined in elementwise_convert_*.cu.
template <typename From>
ElementwiseKernel<1> find_conversion_from(Dtype to);

}  // namespace mlx::core::cuda
