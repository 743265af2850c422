// Splits reading and unpacking over the io threads.
#pragma once

#include <cstddef>
#include <functional>

namespace mlx::core::io {

/// Calls f(begin, end) on parts of [0, n) that are multiples of `unit` (the
/// last aside) and not shorter than `min_part`. The caller takes part; serial
/// when n is small or inside such a part. Returns, or raises the first error,
/// when all parts have ended.
void split_over_threads(
    size_t n,
    size_t unit,
    size_t min_part,
    const std::function<void(size_t, size_t)>& f);

}  // namespace mlx::core::io
