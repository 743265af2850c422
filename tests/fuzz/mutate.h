// Deterministic corruption of valid files, for fuzzing without a fuzzer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

namespace mlx::core::io {

/// Changes a few bytes, numbers or the length of `bytes`. The same `rng`
/// state gives the same result everywhere.
inline std::string mutate(std::string bytes, std::mt19937_64& rng) {
  auto below = [&](size_t n) { return n == 0 ? 0 : rng() % n; };
  static const uint64_t kEdges[] = {
      0,
      1,
      0x7f,
      0xff,
      0x7fffffff,
      0x80000000,
      0xffffffff,
      0x7fffffffffffffff,
      0x8000000000000000,
      0xffffffffffffffff,
      0xfffffffffffffff0};
  size_t changes = 1 + below(4);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(rng());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2: {
        uint64_t edge = kEdges[below(std::size(kEdges))];
        size_t width =
            std::min<size_t>(size_t{1} << below(4), bytes.size() - at);
        for (size_t b = 0; b < width; ++b) {
          bytes[at + b] = static_cast<char>(edge >> (8 * b));
        }
        break;
      }
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(16)));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

}  // namespace mlx::core::io
