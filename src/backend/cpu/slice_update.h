// Kernels of writing slices and of slices at given positions
// (src/ops/slice_update.h).
#pragma once

#include "ops/slice_update.h"

namespace mlx::core::cpu {

void slice_update(
    const SliceUpdate& op, const array& src, const array& update, array& out);
void dynamic_slice(
    const DynamicSlice& op, const array& a, const array& start, array& out);
void dynamic_slice_update(
    const DynamicSliceUpdate& op,
    const array& src,
    const array& update,
    const array& start,
    array& out);

}  // namespace mlx::core::cpu
