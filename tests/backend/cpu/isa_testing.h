// Runs a test body once for every instruction-set level that is built in and
// that this machine has.
#pragma once

#include <string>

#include "backend/cpu/isa.h"

namespace mlx::core::testing {

inline bool machine_has_level(int level) {
  switch (level) {
    case 2:
      return __builtin_cpu_supports("x86-64-v2");
    case 3:
      return __builtin_cpu_supports("x86-64-v3");
    default:
      return __builtin_cpu_supports("x86-64-v4");
  }
}

/// body(function, name of the level) for each usable function of a kernel.
template <typename Kernel, typename Body>
void for_each_level(const Kernel& kernel, Body body) {
  for (int level = 2; level <= 4; ++level) {
    auto function = kernel.levels[level - 2];
    if (function && machine_has_level(level)) {
      body(function, "v" + std::to_string(level));
    }
  }
}

}  // namespace mlx::core::testing
