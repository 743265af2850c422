// Kernels of sorting (src/ops/sort.h).
#pragma once

#include "ops/sort.h"

namespace mlx::core::cpu {

void sort(const Sort& op, const array& x, array& out);
void arg_sort(const ArgSort& op, const array& x, array& out);
void search_sorted(
    const SearchSorted& op,
    const array& sequence,
    const array& values,
    array& out);

}  // namespace mlx::core::cpu
