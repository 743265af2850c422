// Chooses the instruction-set level once per process.
#include "backend/cpu/isa.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace mlx::core::cpu {

namespace {

bool machine_has(int level) {
  switch (level) {
    case 2:
      return __builtin_cpu_supports("x86-64-v2");
    case 3:
      // F16C is not implied by the level's name in every processor list.
      return __builtin_cpu_supports("x86-64-v3") &&
             __builtin_cpu_supports("f16c");
    case 4:
      return __builtin_cpu_supports("x86-64-v4") &&
             __builtin_cpu_supports("f16c");
    default:
      return false;
  }
}

constexpr bool build_has(int level) {
  switch (level) {
#ifdef MLX_HAVE_ISA_V2
    case 2:
      return true;
#endif
#ifdef MLX_HAVE_ISA_V3
    case 3:
      return true;
#endif
#ifdef MLX_HAVE_ISA_V4
    case 4:
      return true;
#endif
    default:
      return false;
  }
}

std::string built_levels() {
  std::string names;
  for (int level = 2; level <= 4; ++level) {
    if (build_has(level)) {
      names += (names.empty() ? "v" : ", v") + std::to_string(level);
    }
  }
  return names;
}

int forced_level(const std::string& text) {
  if (text != "v2" && text != "v3" && text != "v4") {
    throw std::invalid_argument(
        "[cpu] unknown instruction set: MLX_CPU_ISA=" + text +
        ". Expected v2, v3 or v4.");
  }
  int level = text[1] - '0';
  if (!build_has(level)) {
    throw std::runtime_error(
        "[cpu] instruction set not in this build: MLX_CPU_ISA=" + text +
        ". Built are " + built_levels() + ".");
  }
  if (!machine_has(level)) {
    throw std::runtime_error(
        "[cpu] this machine lacks the instruction set: MLX_CPU_ISA=" + text +
        ". Unset it or choose a lower one.");
  }
  return level;
}

int choose_level() {
  const char* forced = std::getenv("MLX_CPU_ISA");
  if (forced && *forced) {
    return forced_level(forced);
  }
  for (int level = 4; level >= 2; --level) {
    if (build_has(level) && machine_has(level)) {
      return level;
    }
  }
  throw std::runtime_error(
      "[cpu] this machine runs none of the instruction sets of this build: " +
      built_levels() + ". Build with a lower MLX_CPU_ISA_LEVELS.");
}

}  // namespace

int isa_level() {
  // When choose_level throws, the next call tries (and reports) again.
  static const int level = choose_level();
  return level;
}

bool has_bf16() {
#ifdef MLX_HAVE_ISA_V4X
  static const bool available = isa_level() == 4 &&
                                __builtin_cpu_supports("avx512bf16") &&
                                __builtin_cpu_supports("avx512vnni");
  return available;
#else
  return false;
#endif
}

}  // namespace mlx::core::cpu
