// Moving elements between memory layouts, without looking at their type.
#pragma once

#include "mlx/array.h"

namespace mlx::core::cpu {

/// Copies elements of `itemsize` bytes (1, 2, 4, 8) for every index of
/// `shape`; strides in elements.
void copy_strided(
    const void* src,
    const Strides& src_strides,
    void* dst,
    const Strides& dst_strides,
    const Shape& shape,
    size_t itemsize);

/// Copies bytes, on several threads and around the caches when there are many.
void copy_bytes(const void* src, void* dst, size_t nbytes);

/// `in` itself when it is row-major, else a row-major copy.
array row_contiguous(const array& in);

/// Gives `out` a new row-major buffer with `in`'s elements (equal shapes and
/// element sizes).
void copy_into_new(const array& in, array& out);

/// Gives `out` a new row-major buffer; returns its address.
template <typename T = char>
T* allocate_output(array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
  return out.data<T>();
}

}  // namespace mlx::core::cpu
