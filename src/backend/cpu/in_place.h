// Operations that change part of an array: where the whole comes from, and
// loops over the part.
#pragma once

#include "backend/cpu/kernels/combine.h"
#include "mlx/array.h"

namespace mlx::core::cpu {

/// Gives `out` the elements of `src`: in src's own memory when nobody else
/// holds it (then nothing is moved, and the strides are src's), else in new
/// row-major memory. Strides are positive and elements dense either way.
void start_from(const array& src, array& out);

/// dst meets src at every index of `shape`, on several threads. Strides in
/// elements; no two indices mean the same element of dst.
void combine_strided(
    const Combine& combine,
    const void* src,
    const Strides& src_strides,
    void* dst,
    const Strides& dst_strides,
    const Shape& shape,
    size_t itemsize);

}  // namespace mlx::core::cpu
