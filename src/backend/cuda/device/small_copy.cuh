// Bytes that travel with a launch.
#pragma once

#include <cstddef>

namespace mlx::core::cuda {

/// As many as fit beside the other arguments in the 4 KiB of a launch.
struct SmallBytes {
  static constexpr size_t most = 3584;
  unsigned char bytes[most];
};

}  // namespace mlx::core::cuda
