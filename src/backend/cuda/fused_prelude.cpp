// Headers of device code as text; the build writes them into device_text.inc.
#include "backend/cuda/fused_prelude.h"

namespace mlx::core::cuda {

namespace {

#include "backend/cuda/device_text.inc"

}  // namespace

std::string fused_prelude(bool has_complex, bool has_rows) {
  std::string text;
  for (const char* part :
       {k_bare,
        k_types,
        k_held,
        k_fast_divisor,
        k_math_core,
        k_math_exp,
        k_math}) {
    text += part;
  }
  if (has_complex) {
    text += k_complex;
    text += k_math_complex;
  }
  if (has_rows) {
    text += k_shuffle;
    text += k_row_combine;
    text += k_combine;
  }
  return text;
}

}  // namespace mlx::core::cuda
