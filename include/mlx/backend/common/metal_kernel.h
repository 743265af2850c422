// Options of fast::metal_kernel, for programs that name them; there is no Metal
// here.
#pragma once

namespace mlx::core {

enum class MathMode { Safe = 0, Relaxed = 1, Fast = 2 };

struct CompileOptions {
  MathMode math_mode = MathMode::Safe;

  CompileOptions() = default;
  bool operator==(const CompileOptions&) const = default;

  using Data = int;
  CompileOptions(Data data) : math_mode(static_cast<MathMode>(data)) {}
  Data serialize() const { return static_cast<Data>(math_mode); }
};

}  // namespace mlx::core
