// What the allocators hold, and limits on it. All sizes in bytes. Freed buffers
// are kept for reuse (the cache) until a limit or clear_cache gives them back.
// Counters are sums over host memory and the memory of a gpu in use. A limit
// holds for each of the two by itself; what is returned as the limit is that
// of the default device's memory.
#pragma once

#include <cstddef>

#include "mlx/api.h"

namespace mlx::core {

// Bytes in buffers that are in use, without the cache.
MLX_API size_t get_active_memory();

// The most that was in use at one time since the start or the last
// reset_peak_memory.
MLX_API size_t get_peak_memory();
MLX_API void reset_peak_memory();

// Bytes in free buffers kept for reuse.
MLX_API size_t get_cache_memory();

// Above the limit an allocation first gives cached memory back to the system,
// then goes on. Returns the limit before. The default is 0.8 of the memory that
// the process may use.
MLX_API size_t set_memory_limit(size_t limit);
MLX_API size_t get_memory_limit();

// At most this much is kept for reuse; the least recently used goes first.
// Returns the limit before. The default is a quarter of the memory that the
// process may use; 0 turns the cache off.
MLX_API size_t set_cache_limit(size_t limit);

// Gives all free buffers back to the system.
MLX_API void clear_cache();

// Memory on this machine is never wired: does nothing and returns 0.
MLX_API size_t set_wired_limit(size_t limit);

}  // namespace mlx::core
