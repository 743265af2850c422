// Fused operations of neural networks. Each equals a composition of ordinary
// operations, which its derivatives and batch rule use.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/backend/common/metal_kernel.h"
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

/// What a kernel's text is compiled with: a type, an int or a bool by name.
using TemplateArg = std::variant<int, bool, Dtype>;
/// What a compiled kernel takes by value.
using ScalarArg = std::variant<bool, int, float>;

/// Launches a kernel: inputs, the shapes and types of its outputs, the grid in
/// threads, the threads of a block, template arguments, what outputs are filled
/// with before, whether to print the text, the stream.
using CustomKernelFunction = std::function<std::vector<array>(
    const std::vector<array>&,
    const std::vector<Shape>&,
    const std::vector<Dtype>&,
    std::tuple<int, int, int>,
    std::tuple<int, int, int>,
    std::vector<std::pair<std::string, TemplateArg>>,
    std::optional<float>,
    bool,
    StreamOrDevice)>;

/// Raises std::runtime_error: there is no Metal here. See cuda_kernel.
MLX_API CustomKernelFunction metal_kernel(
    const std::string& name,
    const std::vector<std::string>& input_names,
    const std::vector<std::string>& output_names,
    const std::string& source,
    const std::string& header = "",
    bool ensure_row_contiguous = true,
    bool atomic_outputs = false,
    const CompileOptions& compile_options = {});

/// An operation from the body of a kernel in CUDA C++. Its arguments are
/// written before it: for an input `a` of float32 `const float* a` and, where
/// the body names them, `a_shape`, `a_strides` (data() and [] by axis) and
/// `a_ndim`; for an output `float* out`, row-major. It is compiled when it is
/// first computed, on the gpu alone, and kept on disk. Calls raise
/// std::invalid_argument for arguments that do not fit and std::runtime_error
/// where there is no gpu; computing raises std::runtime_error with the
/// compiler's log.
MLX_API CustomKernelFunction cuda_kernel(
    const std::string& name,
    const std::vector<std::string>& input_names,
    const std::vector<std::string>& output_names,
    const std::string& source,
    const std::string& header = "",
    bool ensure_row_contiguous = true,
    int shared_memory = 0);

/// Runs the kernel `name` of a cubin or of PTX. It takes the addresses of the
/// inputs, those of the outputs, then the scalars.
MLX_API std::vector<array> precompiled_cuda_kernel(
    const std::string& name,
    const std::string& compiled_source,
    const std::vector<array>& inputs,
    const std::vector<Shape>& output_shapes,
    const std::vector<Dtype>& output_dtypes,
    const std::vector<ScalarArg>& scalars,
    std::tuple<int, int, int> grid,
    std::tuple<int, int, int> threadgroup,
    int shared_memory = 0,
    std::optional<float> init_value = std::nullopt,
    bool ensure_row_contiguous = false,
    StreamOrDevice s = {});

}  // namespace mlx::core::fast
