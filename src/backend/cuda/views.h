// Kernels of those view operations (src/ops/views.h) that may have to copy.
#pragma once

#include "backend/cuda/encoder.h"
#include "ops/views.h"

namespace mlx::core::cuda {

void as_strided(const AsStrided& op, const array& x, array& out, Encoder& e);
void reshape(const Reshape& op, const array& x, array& out, Encoder& e);
void flatten(const Flatten& op, const array& x, array& out, Encoder& e);
void unflatten(const Unflatten& op, const array& x, array& out, Encoder& e);
void contiguous(const Contiguous& op, const array& x, array& out, Encoder& e);
void view(const View& op, const array& x, array& out, Encoder& e);

}  // namespace mlx::core::cuda
