// Moving elements between memory layouts on the device, without looking at
// their type.
#pragma once

#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

/// Copies elements of `itemsize` bytes (1, 2, 4, 8) for every index of
/// `shape`; strides in elements, addresses on the device.
void copy_strided(
    const void* from,
    const Strides& from_strides,
    void* to,
    const Strides& to_strides,
    const Shape& shape,
    size_t itemsize,
    Encoder& e);

/// `in` itself when it is row-major, else a row-major copy.
array row_contiguous(const array& in, Encoder& e);

/// Gives `out` new row-major memory with `in`'s elements (equal shapes and
/// element sizes).
void copy_into_new(const array& in, array& out, Encoder& e);

}  // namespace mlx::core::cuda
