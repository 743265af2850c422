// Headers of device code as text; the build writes them into device_text.inc.
#include "backend/cuda/fused_prelude.h"

#include <algorithm>
#include <iterator>

namespace mlx::core::cuda {

namespace {

#include "backend/cuda/device_text.inc"

// The functions of math_rare.cuh that formulas name.
constexpr const char* kRare[] = {
    "math::sin(",
    "math::cos(",
    "math::tan(",
    "math::sinh(",
    "math::cosh(",
    "math::arcsin(",
    "math::arccos(",
    "math::arctan(",
    "math::arctan2(",
    "math::arcsinh(",
    "math::arccosh(",
    "math::arctanh(",
    "math::floor_divide(",
    "math::remainder(",
    "math::power(",
    "math::left_shift(",
    "math::right_shift("};

}  // namespace

std::string fused_prelude(
    const std::string& body, bool has_complex, bool has_rows) {
  bool has_rare =
      std::any_of(std::begin(kRare), std::end(kRare), [&](const char* name) {
        return body.find(name) != std::string::npos;
      });
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
  text += has_rare || has_complex ? k_math_rare : "";
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
