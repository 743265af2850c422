// Kernels of the view operations (src/ops/views.h).
#pragma once

#include "ops/views.h"

namespace mlx::core::cpu {

void as_strided(const AsStrided& op, const array& x, array& out);
void broadcast(const Broadcast& op, const array& x, array& out);
void expand_dims(const ExpandDims& op, const array& x, array& out);
void squeeze(const Squeeze& op, const array& x, array& out);
void transpose(const Transpose& op, const array& x, array& out);
void slice(const Slice& op, const array& x, array& out);
void reshape(const Reshape& op, const array& x, array& out);
void flatten(const Flatten& op, const array& x, array& out);
void unflatten(const Unflatten& op, const array& x, array& out);
void contiguous(const Contiguous& op, const array& x, array& out);
void copy(const Copy& op, const array& x, array& out);
void stop_gradient(const StopGradient& op, const array& x, array& out);
void view(const View& op, const array& x, array& out);

}  // namespace mlx::core::cpu
