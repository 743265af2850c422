// Quantized matrices: groups of `group_size` entries along the last axis share
// a scale and a bias; an entry is code * scale + bias (mode "affine"). Codes
// of `bits` bits are packed into uint32 words, lowest bits first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// {packed codes (uint32), scales, biases} of a real float matrix whose last
/// axis is divisible by the group size. Defaults: group size 64, 4 bits.
MLX_API std::vector<array> quantize(
    const array& w,
    std::optional<int> group_size = std::nullopt,
    std::optional<int> bits = std::nullopt,
    const std::string& mode = "affine",
    const std::optional<array>& global_scale = std::nullopt,
    StreamOrDevice s = {});

/// The entries that packed codes, scales and biases stand for.
MLX_API array dequantize(
    const array& w,
    const array& scales,
    const std::optional<array>& biases = std::nullopt,
    std::optional<int> group_size = std::nullopt,
    std::optional<int> bits = std::nullopt,
    const std::string& mode = "affine",
    const std::optional<array>& global_scale = std::nullopt,
    std::optional<Dtype> dtype = std::nullopt,
    StreamOrDevice s = {});

/// x @ w^T (w is (out, in)), or x @ w without `transpose` (w is (in, out)),
/// for a quantized w.
MLX_API array quantized_matmul(
    const array& x,
    const array& w,
    const array& scales,
    const std::optional<array>& biases = std::nullopt,
    bool transpose = true,
    std::optional<int> group_size = std::nullopt,
    std::optional<int> bits = std::nullopt,
    const std::string& mode = "affine",
    StreamOrDevice s = {});

}  // namespace mlx::core
