// How a written value meets the one in memory, alone and against other
// threads.
#pragma once

#include "backend/cuda/device/types.cuh"
#include "ops/accumulate.h"

namespace mlx::core::cuda {

template <typename T>
__device__ __forceinline__ bool is_nan(T x) {
  if constexpr (is_complex_v<T>) {
    return x.re != x.re || x.im != x.im;
  } else {
    return x != x;
  }
}

template <typename T>
__device__ __forceinline__ bool is_below(T a, T b) {
  if constexpr (is_complex_v<T>) {
    return a.re < b.re || (a.re == b.re && a.im < b.im);
  } else {
    return a < b;
  }
}

/// The result for old a and new b. Integers wrap; max and min take the new one
/// of equal values, and NaN when either is.
template <typename T>
__device__ __forceinline__ T meet(Accumulate mode, T a, T b) {
  if constexpr (is_half_v<T>) {
    return convert<T>(meet(mode, to_compute(a), to_compute(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    // Sum is "or", prod is "and".
    bool any = mode == Accumulate::sum || mode == Accumulate::max;
    return any ? a || b : a && b;
  } else {
    switch (mode) {
      case Accumulate::none:
        return b;
      case Accumulate::max:
        return is_nan(a) || is_below(b, a) ? a : b;
      case Accumulate::min:
        return is_nan(a) || is_below(a, b) ? a : b;
      default:
        break;
    }
    bool is_sum = mode == Accumulate::sum;
    if constexpr (is_complex_v<T>) {
      return is_sum ? T(a.re + b.re, a.im + b.im)
                    : T(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    } else if constexpr (std::is_integral_v<T>) {
      auto x = static_cast<uint64_t>(a);
      auto y = static_cast<uint64_t>(b);
      return static_cast<T>(is_sum ? x + y : x * y);
    } else {
      return is_sum ? a + b : a * b;
    }
  }
}

/// The unsigned integer in which a compare-and-swap sees a T: its own width
/// or, for bytes, the aligned word around it.
template <typename T>
using SwapWord = std::conditional_t<
    sizeof(T) == 8,
    unsigned long long,
    std::conditional_t<sizeof(T) == 2, unsigned short, unsigned int>>;

/// *to meets `value` while other threads do the same, by compare-and-swap.
template <typename T>
__device__ __forceinline__ void swap_until_met(
    Accumulate mode, T* to, T value) {
  using Word = SwapWord<T>;
  // Blocks of memory begin and end at whole words.
  auto address = reinterpret_cast<uintptr_t>(to);
  uintptr_t within = sizeof(T) == 1 ? address % 4 : 0;
  auto* word = reinterpret_cast<Word*>(address - within);
  int shift = static_cast<int>(8 * within);
  Word seen = *reinterpret_cast<volatile Word*>(word);
  for (;;) {
    T old;
    Word wanted;
    if constexpr (sizeof(T) == 1) {
      old = static_cast<T>(seen >> shift);
      auto met = static_cast<unsigned char>(meet(mode, old, value));
      wanted = (seen & ~(0xffu << shift)) | (unsigned(met) << shift);
    } else {
      memcpy(&old, &seen, sizeof(T));
      T met = meet(mode, old, value);
      memcpy(&wanted, &met, sizeof(T));
    }
    if (wanted == seen) {
      return;
    }
    Word found = atomicCAS(word, seen, wanted);
    if (found == seen) {
      return;
    }
    seen = found;
  }
}

/// Adds by the memory's own units where they know the type; says if so.
template <typename T>
__device__ __forceinline__ bool add_natively(T* to, T value) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 4) {
    atomicAdd(
        reinterpret_cast<unsigned int*>(to), static_cast<unsigned int>(value));
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    atomicAdd(
        reinterpret_cast<unsigned long long*>(to),
        static_cast<unsigned long long>(value));
  } else if constexpr (is_complex_v<T>) {
    atomicAdd(&to->re, value.re);
    atomicAdd(&to->im, value.im);
  } else if constexpr (is_real_float_v<T>) {
    atomicAdd(to, value);
  } else {
    return false;
  }
  return true;
}

/// *to meets `value` while other threads do the same.
template <typename T>
__device__ __forceinline__ void meet_atomically(
    Accumulate mode, T* to, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    // All who write, write the same.
    bool any = mode == Accumulate::sum || mode == Accumulate::max;
    if (value == any) {
      *to = any;
    }
  } else if (mode != Accumulate::sum || !add_natively(to, value)) {
    swap_until_met(mode, to, value);
  }
}

}  // namespace mlx::core::cuda
