// Results too large for the caches are stored past them: their lines need not
// be read first, a third of a copy's traffic.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backend/cpu/kernels/elementwise.h"

namespace mlx::core::cpu {

/// Results from here on do not fit the caches that are left to them.
inline constexpr size_t kStreamingBytes = 16 << 20;
/// What stream_rows makes at a time; half of a first cache.
inline constexpr size_t kStreamedRows = 16 << 10;

/// Whether stream_rows pays off for a new buffer of rows.
inline bool should_stream_rows(size_t bytes, size_t row_bytes) {
  return bytes >= kStreamingBytes && row_bytes <= kStreamedRows;
}

/// fn(from, to, rows) for a few rows at a time, which it makes in a buffer.
template <typename Fn>
void stream_rows(
    const char* from, char* to, size_t rows, size_t row_bytes, Fn&& fn) {
  alignas(64) char buffer[kStreamedRows];
  size_t step = kStreamedRows / row_bytes;
  for (size_t r = 0; r < rows; r += step) {
    size_t count = std::min(step, rows - r);
    fn(from + r * row_bytes, buffer, count);
    copy_streaming(buffer, to + r * row_bytes, count * row_bytes);
  }
}

}  // namespace mlx::core::cpu
