// Block sizes of the allocators: multiples of 64 bytes up to 512, then 8
// sizes for each power of two, from 2 MiB on 16. A block is thus at most 12.5 %
// (from 2 MiB on 6.25 %) larger than what was asked, and all powers of two, and
// what is 8 to 15 times one, fit exactly.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mlx::core {

struct SizeClass {
  static constexpr int small_count = 8;
  static constexpr int large_exponent = 21;  // 2 MiB
  static constexpr int last_exponent = 46;
  static constexpr int medium_count = (large_exponent - 9) * 8;
  static constexpr int count =
      small_count + medium_count + (last_exponent - large_exponent + 1) * 16;
  static constexpr size_t large = size_t(1) << large_exponent;
  static constexpr size_t max_bytes = size_t(1) << (last_exponent + 1);

  int index;
  size_t bytes;

  // The smallest class for `size` bytes, size <= max_bytes.
  static constexpr SizeClass of(size_t size) {
    if (size <= 512) {
      int index = size == 0 ? 0 : static_cast<int>((size - 1) / 64);
      return {index, size_t(index + 1) * 64};
    }
    size_t last = size - 1;
    int exponent = 63 - std::countl_zero(uint64_t(last));
    bool is_large = exponent >= large_exponent;
    int bits = is_large ? 4 : 3;  // the bits below the leading one
    size_t steps = last >> (exponent - bits);
    int step = static_cast<int>(steps) & ((1 << bits) - 1);
    int first =
        is_large ? small_count + medium_count + (exponent - large_exponent) * 16
                 : small_count + (exponent - 9) * 8;
    return {first + step, (steps + 1) << (exponent - bits)};
  }
};

}  // namespace mlx::core
