// Which running combination a scan makes; shared with kernels, so no arrays
// here.
#pragma once

#include <cstdint>

namespace mlx::core {

enum class ScanType : uint8_t { sum, prod, max, min, logaddexp };

}  // namespace mlx::core
