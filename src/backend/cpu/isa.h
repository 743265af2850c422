// Instruction-set levels and the machinery to call a kernel at the best one.
// A kernel header says MLX_ISA_KERNEL(void, f, (const void* x, size_t n)); the
// kernel source defines f inside `namespace mlx::core::cpu::MLX_ISA { … }` and
// is compiled once per level. `cpu::f(x, n)` then runs the best one this
// machine has (v2 = x86-64-v2, v3 = AVX2 with FMA and F16C, v4 = AVX-512).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mlx::core::cpu {

/// The level kernels run at: 2, 3 or 4. Chosen at the first call from the
/// machine, the levels built in, and the variable MLX_CPU_ISA (v2, v3, v4).
/// Throws std::invalid_argument when MLX_CPU_ISA is not one of these, and
/// std::runtime_error when the machine or the build lacks the level.
int isa_level();

/// Whether kernels built for AVX512-BF16 and VNNI exist and may run.
bool has_bf16();

/// A call that picks the function of the current level. The pointer of a level
/// that was not built is null, and isa_level() never names such a level.
template <typename Signature>
struct IsaKernel;

template <typename Result, typename... Args>
struct IsaKernel<Result(Args...)> {
  using Function = Result (*)(Args...);
  Function levels[3];

  /// The function itself, for loops that call it many times.
  Function get() const { return levels[isa_level() - 2]; }
  Result operator()(Args... args) const { return get()(args...); }
};

}  // namespace mlx::core::cpu

#ifdef MLX_HAVE_ISA_V2
#define MLX_ISA_POINTER_V2(name) &v2::name
#else
#define MLX_ISA_POINTER_V2(name) nullptr
#endif
#ifdef MLX_HAVE_ISA_V3
#define MLX_ISA_POINTER_V3(name) &v3::name
#else
#define MLX_ISA_POINTER_V3(name) nullptr
#endif
#ifdef MLX_HAVE_ISA_V4
#define MLX_ISA_POINTER_V4(name) &v4::name
#else
#define MLX_ISA_POINTER_V4(name) nullptr
#endif
#ifdef MLX_HAVE_ISA_V4X
#define MLX_ISA_POINTER_V4X(name) &v4x::name
#else
#define MLX_ISA_POINTER_V4X(name) nullptr
#endif

/// Declares a kernel for every level and `cpu::name`, which calls the best.
/// Use at global scope.
#define MLX_ISA_KERNEL(result, name, params)      \
  namespace mlx::core::cpu {                      \
  namespace v2 {                                  \
  result name params;                             \
  }                                               \
  namespace v3 {                                  \
  result name params;                             \
  }                                               \
  namespace v4 {                                  \
  result name params;                             \
  }                                               \
  inline constexpr IsaKernel<result params> name{ \
      {MLX_ISA_POINTER_V2(name),                  \
       MLX_ISA_POINTER_V3(name),                  \
       MLX_ISA_POINTER_V4(name)}};                \
  }

/// Declares a kernel of a *_bf16.cpp source. `cpu::name` is a plain function
/// pointer, null when not built; call it only when has_bf16() is true.
#define MLX_ISA_KERNEL_BF16(result, name, params)            \
  namespace mlx::core::cpu {                                 \
  namespace v4x {                                            \
  result name params;                                        \
  }                                                          \
  inline constexpr IsaKernel<result params>::Function name = \
      MLX_ISA_POINTER_V4X(name);                             \
  }
