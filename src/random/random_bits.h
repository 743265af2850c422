// The primitive under all random numbers.
#pragma once

#include "ops/structured.h"

namespace mlx::core {

/// For each key of the input (..., 2), an array of `shape` of unsigned
/// integers of `width` bytes.
struct RandomBitsParams {
  Shape shape;
  int width;
  bool operator==(const RandomBitsParams&) const = default;
};

class RandomBits final : public Structured<RandomBits, RandomBitsParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "RandomBits";

  std::pair<std::vector<array>, std::vector<int>> vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
};

}  // namespace mlx::core
