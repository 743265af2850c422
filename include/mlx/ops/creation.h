// Arrays from nothing: ranges, constants, identities, triangles.
#pragma once

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/utils.h"

namespace mlx::core {

/// start, start + step, ... up to but without stop. Raises
/// std::invalid_argument when an argument is not finite or step is 0 and the
/// range not empty.
MLX_API array arange(
    double start, double stop, double step, Dtype dtype, StreamOrDevice s = {});
MLX_API array
arange(double start, double stop, double step, StreamOrDevice s = {});
MLX_API array
arange(double start, double stop, Dtype dtype, StreamOrDevice s = {});
MLX_API array arange(double start, double stop, StreamOrDevice s = {});
MLX_API array arange(double stop, Dtype dtype, StreamOrDevice s = {});
MLX_API array arange(double stop, StreamOrDevice s = {});
MLX_API array arange(int start, int stop, int step, StreamOrDevice s = {});
MLX_API array arange(int start, int stop, StreamOrDevice s = {});
MLX_API array arange(int stop, StreamOrDevice s = {});

/// `num` equally spaced numbers from start to stop, stop included when
/// `endpoint`.
MLX_API array linspace(
    double start,
    double stop,
    int num,
    bool endpoint,
    Dtype dtype = float32,
    StreamOrDevice s = {});
inline array linspace(
    double start,
    double stop,
    int num = 50,
    Dtype dtype = float32,
    StreamOrDevice s = {}) {
  return linspace(start, stop, num, true, dtype, s);
}

/// `vals` broadcast to `shape`.
MLX_API array full(Shape shape, array vals, Dtype dtype, StreamOrDevice s = {});
MLX_API array full(Shape shape, array vals, StreamOrDevice s = {});
template <typename T>
requires(!is_array_v<T>) array
    full(Shape shape, T val, Dtype dtype, StreamOrDevice s = {}) {
  return full(std::move(shape), array(val, dtype), s);
}
template <typename T>
requires(!is_array_v<T>) array full(Shape shape, T val, StreamOrDevice s = {}) {
  return full(std::move(shape), array(val), s);
}

/// `vals` broadcast to the shape of `a`, by default with its type.
MLX_API array
full_like(const array& a, array vals, Dtype dtype, StreamOrDevice s = {});
MLX_API array full_like(const array& a, array vals, StreamOrDevice s = {});
template <typename T>
requires(!is_array_v<T>) array
    full_like(const array& a, T val, Dtype dtype, StreamOrDevice s = {}) {
  return full_like(a, array(val, dtype), dtype, s);
}
template <typename T>
requires(!is_array_v<T>) array
    full_like(const array& a, T val, StreamOrDevice s = {}) {
  return full_like(a, array(val, a.dtype()), a.dtype(), s);
}

MLX_API array zeros(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
inline array zeros(const Shape& shape, StreamOrDevice s = {}) {
  return zeros(shape, float32, s);
}
MLX_API array zeros_like(const array& a, StreamOrDevice s = {});
MLX_API array zeros_like(const array& a, Dtype dtype, StreamOrDevice s = {});
MLX_API array ones(const Shape& shape, Dtype dtype, StreamOrDevice s = {});
inline array ones(const Shape& shape, StreamOrDevice s = {}) {
  return ones(shape, float32, s);
}
MLX_API array ones_like(const array& a, StreamOrDevice s = {});
MLX_API array ones_like(const array& a, Dtype dtype, StreamOrDevice s = {});

/// n rows, m columns, ones on diagonal k, zeros elsewhere.
MLX_API array eye(int n, int m, int k, Dtype dtype, StreamOrDevice s = {});
inline array eye(int n, Dtype dtype, StreamOrDevice s = {}) {
  return eye(n, n, 0, dtype, s);
}
inline array eye(int n, int m, StreamOrDevice s = {}) {
  return eye(n, m, 0, float32, s);
}
inline array eye(int n, int m, int k, StreamOrDevice s = {}) {
  return eye(n, m, k, float32, s);
}
inline array eye(int n, StreamOrDevice s = {}) {
  return eye(n, n, 0, float32, s);
}
MLX_API array identity(int n, Dtype dtype, StreamOrDevice s = {});
inline array identity(int n, StreamOrDevice s = {}) {
  return identity(n, float32, s);
}

/// n rows, m columns, ones on and below diagonal k.
MLX_API array tri(int n, int m, int k, Dtype type, StreamOrDevice s = {});
inline array tri(int n, Dtype type, StreamOrDevice s = {}) {
  return tri(n, n, 0, type, s);
}
/// x (rank >= 2) with zeros above, or below, diagonal k.
MLX_API array tril(array x, int k = 0, StreamOrDevice s = {});
MLX_API array triu(array x, int k = 0, StreamOrDevice s = {});

/// A new array with the same content.
MLX_API array copy(array a, StreamOrDevice s = {});

}  // namespace mlx::core
