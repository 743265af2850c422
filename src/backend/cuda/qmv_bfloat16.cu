// Few rows times a quantized matrix, bfloat16.
#include "backend/cuda/qmv_half.h"

namespace mlx::core::cuda {

void qmv_bfloat16(const QmmArgs& args, Encoder& e) {
  qmv_of_type<bhalf>(args, e);
}

}  // namespace mlx::core::cuda
