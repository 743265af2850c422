// The rules of a node as transforms call them: in a shapeless trace those that
// depend on lengths are postponed.
#pragma once

#include <utility>
#include <vector>

#include "mlx/array.h"

namespace mlx::core::detail {

std::vector<array> node_jvp(
    const array& node,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums);

std::vector<array> node_vjp(
    const array& node,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>& outputs);

std::pair<std::vector<array>, std::vector<int>> node_vmap(
    const array& node,
    const std::vector<array>& inputs,
    const std::vector<int>& axes);

}  // namespace mlx::core::detail
