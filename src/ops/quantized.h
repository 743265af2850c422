// Quantized matrices: packing, unpacking and the product with one.
#pragma once

#include "ops/rules.h"
#include "ops/structured.h"

namespace mlx::core {

/// Groups along the last axis and the width of a code.
struct QuantizeParams {
  int group_size;
  int bits;
  bool operator==(const QuantizeParams&) const = default;
};

/// Input: a real float array. Outputs: codes (uint32), scales, biases.
class Quantize final : public Structured<Quantize, QuantizeParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Quantize";
  std::pair<std::vector<array>, std::vector<int>> vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
};

/// Inputs: codes, scales and biases of one type (float16, bfloat16 or
/// float32). Output: numbers of that type.
class Dequantize final : public Structured<Dequantize, QuantizeParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Dequantize";
  MLX_ALL_RULES()
};

struct QuantizedMatmulParams {
  int group_size;
  int bits;
  bool transpose;
  bool operator==(const QuantizedMatmulParams&) const = default;
};

/// Inputs: x (..., m, k), codes, scales, biases. The quantized matrix has two
/// axes, or as many leading axes as x and of the same lengths.
class QuantizedMatmul final
    : public Structured<QuantizedMatmul, QuantizedMatmulParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "QuantizedMatmul";
  MLX_ALL_RULES()
};

}  // namespace mlx::core
