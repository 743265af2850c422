// Functions that are traced once, made smaller and fused, and then run without
// their own code.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"

namespace mlx::core {

/// How much is done with a traced function.
enum class CompileMode {
  /// Compiled functions run as they are.
  disabled,
  /// Fused, but equal nodes and copies stay.
  no_simplify,
  /// Made smaller, but not fused.
  no_fuse,
  /// Both.
  enabled
};

/// A function that does what `fun` does. `fun` runs once for each set of input
/// shapes and types and must depend on its inputs alone; what it does besides
/// building arrays happens only then. The 256 traces that were used last are
/// kept. With `shapeless` one trace serves all shapes of the same number of
/// dimensions; lengths that `fun` itself reads stay those of the first call.
///
/// The result raises std::invalid_argument when `fun` evaluates an array, uses
/// one of another trace or an argument that it did not take from its arguments,
/// or, with `shapeless`, an operation does not know its shape for other inputs.
///
/// The environment variable MLX_COMPILE_VERBOSE, set to anything, prints each
/// trace to the standard error stream: what was fused, and why a part ends
/// where it ends.
MLX_API std::function<std::vector<array>(const std::vector<array>&)> compile(
    std::function<std::vector<array>(const std::vector<array>&)> fun,
    bool shapeless = false);
MLX_API std::function<std::vector<array>(const std::vector<array>&)> compile(
    std::vector<array> (*fun)(const std::vector<array>&),
    bool shapeless = false);
/// The same for a lambda that captures nothing.
template <
    typename F,
    typename = std::enable_if_t<
        std::is_convertible_v<F, decltype(+std::declval<F>())>>>
std::function<std::vector<array>(const std::vector<array>&)> compile(
    F&& f, bool shapeless = false) {
  return compile(+f, shapeless);
}

/// Turns compile off for the process: functions run as they are.
MLX_API void disable_compile();
/// Turns it on again, over MLX_DISABLE_COMPILE in the environment.
MLX_API void enable_compile();
/// How much is done from now on; functions are traced anew for another mode.
MLX_API void set_compile_mode(CompileMode mode);

namespace detail {

MLX_API CompileMode compile_mode();

/// compile() with an identity: functions of one `fun_id` share their traces.
/// `constants` are further values that the function depends on.
MLX_API std::function<std::vector<array>(const std::vector<array>&)> compile(
    std::function<std::vector<array>(const std::vector<array>&)> fun,
    std::uintptr_t fun_id,
    bool shapeless = false,
    std::vector<uint64_t> constants = {});
/// Forgets the traces of one function, of all.
MLX_API void compile_erase(std::uintptr_t fun_id);
MLX_API void compile_clear_cache();

}  // namespace detail

}  // namespace mlx::core
