// Transposes an N x N block held in N registers. Each of the log2(N) rounds
// exchanges, between rows i and i + s, the lanes in which bit s differs; the
// compiler turns every exchange into one or two shuffles.
#pragma once

#include <utility>

#include "backend/cpu/simd/vec.h"

namespace mlx::core::cpu::MLX_ISA {

namespace detail {

template <int Step, typename V, size_t... Lane>
MLX_INLINE void exchange(V& low, V& high, std::index_sequence<Lane...>) {
  constexpr int n = sizeof...(Lane);
  V a = low;
  V b = high;
  low = __builtin_shufflevector(
      a, b, ((Lane & Step) ? n + int(Lane) - Step : int(Lane))...);
  high = __builtin_shufflevector(
      a, b, ((Lane & Step) ? n + int(Lane) : int(Lane) + Step)...);
}

template <int Step, int N, typename V>
MLX_INLINE void exchange_rows(V* rows) {
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    if ((i & Step) == 0) {
      exchange<Step>(rows[i], rows[i + Step], std::make_index_sequence<N>{});
    }
  }
  if constexpr (Step > 1) {
    exchange_rows<Step / 2, N>(rows);
  }
}

}  // namespace detail

/// rows[i][j] becomes rows[j][i]. V is a raw GCC vector of N lanes.
template <int N, typename V>
MLX_INLINE void transpose_registers(V* rows) {
  detail::exchange_rows<N / 2, N>(rows);
}

}  // namespace mlx::core::cpu::MLX_ISA
