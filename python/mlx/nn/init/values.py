"""Initializers whose values do not depend on the shape."""

from __future__ import annotations

from typing import Callable

import mlx.core as mx

Initializer = Callable[[mx.array], mx.array]


def constant(value: float, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Fill with one value.

    Args:
        value: The value.
        dtype: Of the result.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.init.constant(0.5)(mx.zeros((2, 2))).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.full(a.shape, value, dtype=dtype)

    return initializer


def normal(
    mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Initializer:
    """Draw from a normal distribution.

    Args:
        mean: The mean.
        std: The standard deviation.
        dtype: Of the result.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.init.normal(std=0.02)(mx.zeros((3, 4))).shape
        (3, 4)
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.random.normal(a.shape, dtype, mean, std)

    return initializer


def uniform(
    low: float = 0.0, high: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Initializer:
    """Draw from a uniform distribution.

    Args:
        low: The lower bound, included.
        high: The upper bound, excluded.
        dtype: Of the result.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> values = nn.init.uniform(-0.1, 0.1)(mx.zeros((3, 4)))
        >>> bool(mx.all(mx.abs(values) <= 0.1))
        True
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.random.uniform(low, high, a.shape, dtype)

    return initializer
