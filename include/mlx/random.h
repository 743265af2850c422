// Random numbers: Threefry-2x32 keyed by arrays, so that the same key gives
// the same numbers on every device. Functions that get no key draw one from
// the calling thread's sequence.
#pragma once

#include <optional>
#include <utility>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core::random {

/// A sequence of keys: each draw splits the state.
class MLX_API KeySequence {
 public:
  explicit KeySequence(uint64_t seed);
  void seed(uint64_t seed);
  array next();
  /// The calling thread's sequence, seeded by the clock unless seed() was
  /// called.
  static KeySequence& default_();

  /// The state, for callers that save and restore it.
  const array& state() const { return key_; }
  void set_state(const array& key) { key_ = key; }

 private:
  array key_;
};

/// The key of a seed: uint32 of shape (2,), high word first.
MLX_API array key(uint64_t seed);

/// Seeds the calling thread's sequence.
MLX_API void seed(uint64_t seed);

/// Uniform bits of `width` bytes (1, 2 or 4) as unsigned integers. Raises
/// std::invalid_argument for another width or a key that is not uint32 (2,).
MLX_API array bits(
    const Shape& shape,
    int width,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
inline array bits(
    const Shape& shape,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return bits(shape, 4, key, s);
}

/// Keys independent of each other and of `key`: two, or rows of (num, 2).
MLX_API std::pair<array, array> split(const array& key, StreamOrDevice s = {});
MLX_API array split(const array& key, int num, StreamOrDevice s = {});

/// Uniform numbers of [low, high) in float16, bfloat16 or float32.
MLX_API array uniform(
    const array& low,
    const array& high,
    const Shape& shape,
    Dtype dtype = float32,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
template <typename T, typename U>
array uniform(
    T low,
    U high,
    const Shape& shape,
    Dtype dtype = float32,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return uniform(array(low), array(high), shape, dtype, key, s);
}
MLX_API array uniform(
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
inline array uniform(
    const Shape& shape,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return uniform(shape, float32, key, s);
}

/// Normal numbers with mean `loc` and standard deviation `scale`.
MLX_API array normal(
    const Shape& shape,
    Dtype dtype,
    const std::optional<array>& loc,
    const std::optional<array>& scale,
    const std::optional<array>& key,
    StreamOrDevice s = {});
inline array normal(
    const Shape& shape,
    Dtype dtype,
    const float loc,
    const float scale,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  auto given = [dtype](float value, float neutral) {
    return value == neutral ? std::nullopt
                            : std::make_optional(array(value, dtype));
  };
  return normal(shape, dtype, given(loc, 0), given(scale, 1), key, s);
}
inline array normal(
    const Shape& shape,
    const float loc,
    const float scale,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return normal(shape, float32, loc, scale, key, s);
}
inline array normal(
    const Shape& shape,
    const Dtype dtype,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return normal(shape, dtype, 0.0f, 1.0f, key, s);
}
inline array normal(
    const Shape& shape,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return normal(shape, float32, 0.0f, 1.0f, key, s);
}

/// Uniform integers of [low, high).
MLX_API array randint(
    const array& low,
    const array& high,
    const Shape& shape,
    Dtype dtype = int32,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
template <typename T, typename U>
array randint(
    T low,
    U high,
    const Shape& shape,
    Dtype dtype = int32,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return randint(array(low), array(high), shape, dtype, key, s);
}

/// True with probability `p` (a floating type), bool.
MLX_API array bernoulli(
    const array& p,
    const Shape& shape,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
MLX_API array bernoulli(
    const array& p,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
template <typename T>
requires(!is_array_v<T> && std::is_arithmetic_v<T>) array bernoulli(
    T p,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return bernoulli(array(static_cast<float>(p)), key, s);
}
template <typename T>
requires(!is_array_v<T> && std::is_arithmetic_v<T>) array bernoulli(
    T p,
    const Shape& shape,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {}) {
  return bernoulli(array(static_cast<float>(p)), shape, key, s);
}
MLX_API array bernoulli(
    const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});

/// Normal numbers between `lower` and `upper`.
MLX_API array truncated_normal(
    const array& lower,
    const array& upper,
    const Shape& shape,
    Dtype dtype = float32,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
MLX_API array truncated_normal(
    const array& lower,
    const array& upper,
    Dtype dtype = float32,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});

/// Numbers of the standard Gumbel distribution, -log(-log(u)).
MLX_API array gumbel(
    const Shape& shape,
    Dtype dtype = float32,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});

/// Indices (uint32) drawn with probabilities softmax(logits) along an axis.
MLX_API array categorical(
    const array& logits,
    int axis,
    const Shape& shape,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
MLX_API array categorical(
    const array& logits_,
    int axis,
    int num_samples,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
MLX_API array categorical(
    const array& logits,
    int axis = -1,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});

/// Numbers of the Laplace distribution.
MLX_API array laplace(
    const Shape& shape,
    Dtype dtype,
    const float loc,
    const float scale,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});

/// The sub-arrays along an axis, or 0 .. x - 1, in random order.
MLX_API array permutation(
    const array& x,
    int axis = 0,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});
MLX_API array permutation(
    int x,
    const std::optional<array>& key = std::nullopt,
    StreamOrDevice s = {});

}  // namespace mlx::core::random
