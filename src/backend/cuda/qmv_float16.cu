// Few rows times a matrix quantized to 4 or 8 bits, float16.
#include "backend/cuda/qmv_half.h"

namespace mlx::core::cuda {

void qmv_float16(const QmmArgs& args, Encoder& e) {
  if (args.w.bits == 4) {
    qmv_of_width<half, 4>(args, e);
  } else if (args.w.bits == 8) {
    qmv_of_width<half, 8>(args, e);
  } else {
    qmv_float16_odd(args, e);
  }
}

}  // namespace mlx::core::cuda
