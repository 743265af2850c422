// What an extension's eval_cpu uses to fill its result on all cores.
#pragma once

#include <cstddef>
#include <type_traits>

#include "mlx/api.h"

namespace mlx::core::cpu {

namespace detail {

using FillFn = void (*)(void* context, size_t begin, size_t count, void* to);

MLX_API void parallel_fill(
    void* out, size_t size, size_t itemsize, void* context, FillFn fill);

}  // namespace detail

/// Calls fill(begin, count, to) for ranges that together cover the `size`
/// elements of `out` once, on several threads where that pays off. It writes
/// the elements from number `begin` on to `to`, which is their place in `out`
/// or, where the result is too large for the caches, a small buffer that is
/// then stored past them: so it must not read `to`, nor may `out` be an input.
/// The first exception ends the work and is raised here.
template <typename T, typename Fill>
void parallel_fill(T* out, size_t size, Fill&& fill) {
  using F = std::remove_reference_t<Fill>;
  detail::parallel_fill(
      out,
      size,
      sizeof(T),
      const_cast<void*>(static_cast<const void*>(&fill)),
      [](void* context, size_t begin, size_t count, void* to) {
        (*static_cast<F*>(context))(begin, count, static_cast<T*>(to));
      });
}

}  // namespace mlx::core::cpu
