// Kernels of sorting and searching (src/ops/sort.h).
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/sort.h"

namespace mlx::core::cuda {

void sort(const Sort& op, const array& x, array& out, Encoder& e);
void arg_sort(const ArgSort& op, const array& x, array& out, Encoder& e);
void search_sorted(
    const SearchSorted& op,
    const array& sequence,
    const array& values,
    array& out,
    Encoder& e);

}  // namespace mlx::core::cuda
