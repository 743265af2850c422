// Kernels of writing slices and of slices at given positions
// (src/ops/slice_update.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/slice_update.h"

namespace mlx::core::cuda {

void slice_update(
    const SliceUpdate& op,
    const array& src,
    const array& update,
    array& out,
    Encoder& e);
void dynamic_slice(
    const DynamicSlice& op,
    const array& a,
    const array& start,
    array& out,
    Encoder& e);
void dynamic_slice_update(
    const DynamicSliceUpdate& op,
    const array& src,
    const array& update,
    const array& start,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
