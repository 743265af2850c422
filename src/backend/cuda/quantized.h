// Quantized matrices: packing, unpacking and the product with one.
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/quantized.h"

namespace mlx::core::cuda {

void quantize(
    const Quantize& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs,
    Encoder& e);
void dequantize(
    const Dequantize& op,
    const array& w,
    const array& scales,
    const array& biases,
    array& out,
    Encoder& e);
void quantized_matmul(
    const QuantizedMatmul& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
