// Few rows times a matrix quantized to 2, 3, 5 or 6 bits, float16.
#include "backend/cuda/qmv_half.h"

namespace mlx::core::cuda {

void qmv_float16_odd(const QmmArgs& args, Encoder& e) {
  switch (args.w.bits) {
    case 2:
      return qmv_of_width<half, 2>(args, e);
    case 3:
      return qmv_of_width<half, 3>(args, e);
    case 5:
      return qmv_of_width<half, 5>(args, e);
    default:
      return qmv_of_width<half, 6>(args, e);
  }
}

}  // namespace mlx::core::cuda
