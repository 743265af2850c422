// Memory that one thread keeps for the duration of a kernel and between
// kernels: packed panels, sums, the values of a fused program. Grows only;
// contents are not kept.
#pragma once

#include <cstddef>

namespace mlx::core::cpu {

enum class ScratchUse { shared_panels, panels, sums, fused };

/// At least `bytes`, aligned to 64, valid until the same thread asks again
/// for the same use. Throws std::bad_alloc.
void* scratch(ScratchUse use, size_t bytes);

}  // namespace mlx::core::cpu
