// Quantized matrices as arrays.
#pragma once

#include <vector>

#include "ops/quantized.h"

namespace mlx::core::cpu {

void quantize(
    const Quantize& op,
    const std::vector<array>& inputs,
    std::vector<array>& outputs);
void dequantize(
    const Dequantize& op,
    const array& w,
    const array& scales,
    const array& biases,
    array& out);
void quantized_matmul(
    const QuantizedMatmul& op, const std::vector<array>& inputs, array& out);

}  // namespace mlx::core::cpu
