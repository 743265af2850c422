// Block routines of the elementwise operations and of type conversion: one
// operation over `n` contiguous elements, meant for blocks of about 1024 that
// stay in L1. An executor strings them together, one operation at a time or a
// fused tape. All signatures are the same; `out` may be one of the inputs when
// its elements are not wider than theirs.
//
// Measured at v3 on one core of an EPYC (Zen 3) in L1, ns per element:
// float32    add 0.09 (130 GB/s moved, scalar operand too), divide 0.13, less
//            and select 0.11, exp 0.54, erf 0.51, tanh 0.53, sigmoid 0.65, log
//            0.70, sin 0.78, expm1 1.3, logaddexp 1.8, log1p 2.1, arctan2 3.4,
//            power 4.8 (scalar exponent 2 or 3: 0.10, 1/2: 0.21)
// 16 bits    bfloat16 add 0.21, float16 add 0.13
// int32      add 0.05 to 0.1, floor_divide 1.1
// float64    add 0.12, functions 5 to 25 (libm)
// complex64  multiply 0.3, abs 1.0, functions 17 to 90 (libm)
// converting float32 to float16 0.10, to bfloat16 0.15, from either 0.09
// At 20 GB/s for a core (an estimate) memory takes 0.4 ns for a float32 element
// read and written.
#pragma once

#include "backend/cpu/isa.h"
#include "mlx/dtype.h"
#include "ops/elementwise_op.h"

namespace mlx::core::cpu {

using BlockFn = void (*)(const void* const* in, void* out, size_t n);

}  // namespace mlx::core::cpu

// The routine of `op` for operands of type `compute`
// (elementwise_operand_dtype); the result has elementwise_result_dtype. Bit k
// of `scalar_mask` says that operand k is one element for the whole block.
// The condition of select is bool, its other operands have type `compute`.
// Null when the operation does not take the type, and for the dearer functions
// of float16 and bfloat16: convert the block to float32 and back instead. The
// cheap ones convert in registers, which gives the same bits three to four
// times as fast.
MLX_ISA_KERNEL(
    BlockFn,
    elementwise_block,
    (ElementwiseOp op, Dtype compute, unsigned scalar_mask))

// in[0] of type `from` to `out` of type `to`, any of the 14 x 14 pairs. Floats
// truncate toward zero, anything to bool is != 0, complex gives the real part.
// In place only when `to` is not wider than `from`.
MLX_ISA_KERNEL(BlockFn, convert_block, (Dtype from, Dtype to))

// dst[i] = src[i * stride] and dst[i * stride] = src[i] for elements of 1, 2, 4
// or 8 bytes; the stride counts elements and may be 0 or negative.
MLX_ISA_KERNEL(
    void,
    gather_block,
    (const void* src, int64_t stride, void* dst, size_t n, size_t item_size))
MLX_ISA_KERNEL(
    void,
    scatter_block,
    (const void* src, void* dst, int64_t stride, size_t n, size_t item_size))

// Copies past the caches: for results much larger than the last-level cache
// that are not read again soon. Saves reading the destination's lines. Weakly
// ordered: finish_streaming() (streaming.h) comes before others may look.
MLX_ISA_KERNEL(
    void, copy_streaming, (const void* src, void* dst, size_t size_bytes))
