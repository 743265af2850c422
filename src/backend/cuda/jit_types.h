// The beginning of programs that are compiled at run time: the element types
// and what every kernel needs, so that no header has to be read.
#pragma once

#include <string>

#include "mlx/dtype.h"

namespace mlx::core::cuda::jit {

/// Text to stand before `program`: integers of fixed width, float16_t,
/// bfloat16_t, complex64_t, the constants inf and WARP_SIZE, elem_to_loc, and
/// the groups cooperative_groups::this_grid() and this_thread_block(). The
/// toolkit's headers are included in place of our own where the program says
/// words that only they know: intrinsics of halves, tiles of a block,
/// cuda::std.
std::string prelude(const std::string& program);

/// The name of an element type in such programs.
const char* type_name(Dtype dtype);

/// How shapes and strides are passed, as the prelude declares them.
inline constexpr int kMostAxes = 12;
struct KernelShape {
  int values[kMostAxes];
};
struct KernelStrides {
  long long values[kMostAxes];
};

}  // namespace mlx::core::cuda::jit
