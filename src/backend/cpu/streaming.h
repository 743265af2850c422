// Results too large for the caches are stored past them: their lines need not
// be read first, a third of a copy's traffic. They are made in a small buffer
// and moved piece by piece: stores of a piece that fits the store queue (2 KiB
// on Zen 3) drain while the next one is worked out.
#pragma once

#include <xmmintrin.h>

#include <algorithm>
#include <cstddef>

#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

/// Results from here on do not fit the caches that are left to them.
inline constexpr size_t kStreamingBytes = 16 << 20;
/// A piece, where its size is free.
inline constexpr size_t kStreamedPiece = 1 << 10;
/// The longest row that is one piece; half of a first cache.
inline constexpr size_t kStreamedRow = 16 << 10;

/// Ends a thread's streaming: orders its weakly ordered stores before whatever
/// publishes the result.
inline void finish_streaming() {
  _mm_sfence();
}

/// Whether stream_rows pays off for a new buffer of rows.
inline bool should_stream_rows(size_t bytes, size_t row_bytes) {
  return bytes >= kStreamingBytes && row_bytes <= kStreamedRow;
}

/// fn(from, to, rows) for a few rows at a time, which it makes in a buffer.
template <typename Fn>
void stream_rows(
    const char* from, char* to, size_t rows, size_t row_bytes, Fn&& fn) {
  alignas(64) char buffer[kStreamedRow];
  size_t step = std::max<size_t>(1, kStreamedPiece / row_bytes);
  for (size_t r = 0; r < rows; r += step) {
    size_t count = std::min(step, rows - r);
    fn(from + r * row_bytes, buffer, count);
    copy_streaming(buffer, to + r * row_bytes, count * row_bytes);
  }
  finish_streaming();
}

/// fn(from, to, rows) for ranges that together cover all rows, on several
/// threads; a thread takes `grain` rows at least.
template <typename Fn>
void parallel_rows(
    const char* from,
    char* to,
    size_t rows,
    size_t row_bytes,
    size_t grain,
    bool streaming,
    Fn&& fn) {
  parallel_for(rows, grain, [&](size_t begin, size_t end) {
    const char* first = from + begin * row_bytes;
    char* target = to + begin * row_bytes;
    if (streaming) {
      stream_rows(first, target, end - begin, row_bytes, fn);
    } else {
      fn(first, target, end - begin);
    }
  });
}

}  // namespace mlx::core::cpu
