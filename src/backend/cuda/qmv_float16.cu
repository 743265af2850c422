// Few rows times a quantized matrix, float16.
#include "backend/cuda/qmv_half.h"

namespace mlx::core::cuda {

void qmv_float16(const QmmArgs& args, Encoder& e) {
  qmv_of_type<half>(args, e);
}

}  // namespace mlx::core::cuda
