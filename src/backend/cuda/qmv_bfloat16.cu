// Few rows times a matrix quantized to 4 or 8 bits, bfloat16.
#include "backend/cuda/qmv_half.h"

namespace mlx::core::cuda {

void qmv_bfloat16(const QmmArgs& args, Encoder& e) {
  if (args.w.bits == 4) {
    qmv_of_width<bhalf, 4>(args, e);
  } else if (args.w.bits == 8) {
    qmv_of_width<bhalf, 8>(args, e);
  } else {
    qmv_bfloat16_odd(args, e);
  }
}

}  // namespace mlx::core::cuda
