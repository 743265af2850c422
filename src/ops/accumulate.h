// How a written value meets the one that is there.
#pragma once

namespace mlx::core {

enum class Accumulate { none, sum, prod, max, min };

}  // namespace mlx::core
