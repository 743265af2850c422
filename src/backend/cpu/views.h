// Kernels of those view operations (src/ops/views.h) that may have to copy.
#pragma once

#include "ops/views.h"

namespace mlx::core::cpu {

void as_strided(const AsStrided& op, const array& x, array& out);
void reshape(const Reshape& op, const array& x, array& out);
void flatten(const Flatten& op, const array& x, array& out);
void unflatten(const Unflatten& op, const array& x, array& out);
void contiguous(const Contiguous& op, const array& x, array& out);
void view(const View& op, const array& x, array& out);

}  // namespace mlx::core::cpu
