// Fused operations of neural networks. Each equals a composition of ordinary
// operations, which its derivatives and batch rule use.
#pragma once

#include <optional>
#include <string>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core::fast {

/// x * rsqrt(mean(x^2) + eps) * weight over the last axis (Zhang and Sennrich
/// 2019), computed in float32. `weight` is 1-d with the length of that axis.
/// The result has the promoted type of x and weight.
MLX_API array rms_norm(
    const array& x,
    const std::optional<array>& weight,
    float eps,
    StreamOrDevice s = {});

/// (x - mean) * rsqrt(var + eps) * weight + bias over the last axis (Ba et
/// al. 2016), computed in float32.
MLX_API array layer_norm(
    const array& x,
    const std::optional<array>& weight,
    const std::optional<array>& bias,
    float eps,
    StreamOrDevice s = {});

/// Rotary position encoding (Su et al. 2021) of x (B, ..., T, D): the first
/// `dims` features of token t turn by (offset + t) * scale * base^(-2i/dims),
/// in pairs of neighbours when `traditional`, else of the two halves.
/// Instead of `base`, `freqs` (dims / 2) gives what the position is divided
/// by. `offset` as array is a scalar or has one entry a batch.
MLX_API array rope(
    const array& x,
    int dims,
    bool traditional,
    std::optional<float> base,
    float scale,
    int offset,
    const std::optional<array>& freqs = std::nullopt,
    StreamOrDevice s = {});
MLX_API array rope(
    const array& x,
    int dims,
    bool traditional,
    std::optional<float> base,
    float scale,
    const array& offset,
    const std::optional<array>& freqs = std::nullopt,
    StreamOrDevice s = {});

/// softmax(scale * q k^T + mask) v for queries (B, Nq, Tq, D), keys (B, Nkv,
/// Tkv, D) and values (B, Nkv, Tkv, Dv), Nq a multiple of Nkv; the softmax in
/// float32. mask_mode "causal" lets query i see keys up to i + Tkv - Tq;
/// "array" or an array alone: bool removes keys, other types are added.
/// `sinks` (Nq) adds a logit to each head's softmax whose value is zero.
MLX_API array scaled_dot_product_attention(
    const array& queries,
    const array& keys,
    const array& values,
    const float scale,
    const std::string& mask_mode = "",
    std::optional<array> mask_arr = {},
    const std::optional<array>& sinks = {},
    bool force_fused = false,
    StreamOrDevice s = {});
/// The form of 0.26.
inline array scaled_dot_product_attention(
    const array& queries,
    const array& keys,
    const array& values,
    const float scale,
    const std::string& mask_mode,
    std::optional<array> mask_arr,
    const std::optional<array>& sinks,
    StreamOrDevice s) {
  return scaled_dot_product_attention(
      queries,
      keys,
      values,
      scale,
      mask_mode,
      std::move(mask_arr),
      sinks,
      false,
      s);
}

}  // namespace mlx::core::fast
