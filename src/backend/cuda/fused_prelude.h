// The part of a generated text that is not made.
#pragma once

#include <string>

namespace mlx::core::cuda {

/// Device headers, as many as `body` needs: each costs the compiler a few
/// milliseconds.
std::string fused_prelude(
    const std::string& body, bool has_complex, bool has_rows);

}  // namespace mlx::core::cuda
