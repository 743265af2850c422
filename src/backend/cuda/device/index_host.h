// The host's part of index.cuh: filling the tables.
#pragma once

#include "backend/common/layouts.h"
#include "mlx/backend/common/utils.h"
#include "types/error.h"

namespace mlx::core::cuda {

/// collapse_contiguous_dims in place and without the heap: a launch happens
/// too often for that. A single element has no axes left.
inline void merge_axes(Shape& sizes, const SmallVector<Strides*>& operands) {
  size_t kept = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t n = sizes[i];
    if (n == 1) {
      continue;
    }
    bool joins = kept > 0 && sizes[kept - 1] * n <= INT32_MAX;
    for (const Strides* s : operands) {
      joins = joins && (*s)[kept - 1] == (*s)[i] * n;
    }
    size_t at = joins ? kept - 1 : kept++;
    sizes[at] = static_cast<ShapeElem>(joins ? sizes[at] * n : n);
    for (Strides* s : operands) {
      (*s)[at] = (*s)[i];
    }
  }
  sizes.resize(kept);
  for (Strides* s : operands) {
    s->resize(kept);
  }
}

/// The table of axes that are merged already.
template <int operands>
StridedAxes<operands> axes_table(
    const char* op,
    const Shape& sizes,
    const Strides* const (&strides)[operands]) {
  StridedAxes<operands> axes;
  axes.ndim = static_cast<int>(sizes.size());
  if (axes.ndim > StridedAxes<operands>::most) {
    invalid(
        op,
        "too many axes that memory does not join: ",
        axes.ndim,
        ". The gpu takes up to ",
        StridedAxes<operands>::most,
        "; make the inputs contiguous.");
  }
  for (int i = 0; i < axes.ndim; ++i) {
    axes.sizes[i] = FastDivisor(static_cast<uint32_t>(sizes[i]));
    for (int k = 0; k < operands; ++k) {
      axes.strides[k][i] = (*strides[k])[i];
    }
  }
  return axes;
}

template <int operands>
StridedAxes<operands> strided_axes(
    const char* op, const Shape& shape, const std::vector<Strides>& strides) {
  auto [sizes, merged] = collapse_contiguous_dims(shape, strides);
  const Strides* all[operands];
  for (int k = 0; k < operands; ++k) {
    all[k] = &merged[k];
  }
  return axes_table<operands>(op, sizes, all);
}

/// Whether 32 bits count the elements (and FastDivisor can be used).
inline bool fits_32_bits(size_t size) {
  return size < (size_t(1) << 31);
}

}  // namespace mlx::core::cuda
