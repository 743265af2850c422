// The part of a generated text that is not made.
#pragma once

#include <string>

namespace mlx::core::cuda {

/// Device headers, as many as are needed: each costs the compiler a few
/// milliseconds.
std::string fused_prelude(bool has_complex, bool has_rows);

}  // namespace mlx::core::cuda
