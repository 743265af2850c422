"""Initializers that keep the size of what passes through a layer."""

from __future__ import annotations

import math
from typing import Callable, Literal

import mlx.core as mx


def _fans(op: str, a: mx.array) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input."""
    if a.ndim < 2:
        raise ValueError(
            f"[{op}] too few axes: {a.ndim}. Fan-in and fan-out need at least 2."
        )
    kernel = math.prod(a.shape[1:-1])
    return a.shape[-1] * kernel, a.shape[0] * kernel


def _fan(op: str, a: mx.array, mode: str) -> int:
    fans = dict(zip(("fan_in", "fan_out"), _fans(op, a)))
    if mode not in fans:
        raise ValueError(
            f"[{op}] unknown mode: {mode!r}. Expected 'fan_in' or 'fan_out'."
        )
    return fans[mode]


def glorot_normal(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, float], mx.array]:
    r"""Normal values of deviation :math:`\sqrt{2 / (\mathrm{fan_{in} + fan_{out}})}`.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward
    neural networks" (2010), https://proceedings.mlr.press/v9/glorot10a.html.

    Args:
        dtype: Of the result.

    Returns:
        A function of an array and `gain` (default 1), a factor of the values.

    Raises:
        ValueError: When called with an array of fewer than two axes.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> values = nn.init.glorot_normal()(mx.zeros((100, 100)), 2.0)
        >>> round(mx.std(values).item(), 1)
        0.2
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        std = gain * math.sqrt(2.0 / sum(_fans("glorot_normal", a)))
        return mx.random.normal(a.shape, dtype, 0.0, std)

    return initializer


def glorot_uniform(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, float], mx.array]:
    r"""Uniform values within :math:`\pm\sqrt{6 / (\mathrm{fan_{in} + fan_{out}})}`.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward
    neural networks" (2010), https://proceedings.mlr.press/v9/glorot10a.html.

    Args:
        dtype: Of the result.

    Returns:
        A function of an array and `gain` (default 1), a factor of the values.

    Raises:
        ValueError: When called with an array of fewer than two axes.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> values = nn.init.glorot_uniform()(mx.zeros((3, 3)))
        >>> bool(mx.all(mx.abs(values) <= 1.0))
        True
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        bound = gain * math.sqrt(6.0 / sum(_fans("glorot_uniform", a)))
        return mx.random.uniform(-bound, bound, a.shape, dtype)

    return initializer


def he_normal(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, Literal["fan_in", "fan_out"], float], mx.array]:
    r"""Normal values of deviation :math:`1 / \sqrt{\mathrm{fan}}`.

    He et al., "Delving deep into rectifiers" (2015),
    https://arxiv.org/abs/1502.01852. A gain of :math:`\sqrt 2` is the paper's for
    ReLU.

    Args:
        dtype: Of the result.

    Returns:
        A function of an array, `mode` (``"fan_in"``, the default, or
        ``"fan_out"``) and `gain` (default 1), a factor of the values.

    Raises:
        ValueError: When called with an array of fewer than two axes or an
            unknown mode.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> values = nn.init.he_normal()(mx.zeros((1000, 25)))
        >>> round(mx.std(values).item(), 1)
        0.2
    """

    def initializer(
        a: mx.array,
        mode: Literal["fan_in", "fan_out"] = "fan_in",
        gain: float = 1.0,
    ) -> mx.array:
        std = gain / math.sqrt(_fan("he_normal", a, mode))
        return mx.random.normal(a.shape, dtype, 0.0, std)

    return initializer


def he_uniform(
    dtype: mx.Dtype = mx.float32,
) -> Callable[[mx.array, Literal["fan_in", "fan_out"], float], mx.array]:
    r"""Uniform values within :math:`\pm\sqrt{3 / \mathrm{fan}}`.

    He et al., "Delving deep into rectifiers" (2015),
    https://arxiv.org/abs/1502.01852. A gain of :math:`\sqrt 2` is the paper's for
    ReLU.

    Args:
        dtype: Of the result.

    Returns:
        A function of an array, `mode` (``"fan_in"``, the default, or
        ``"fan_out"``) and `gain` (default 1), a factor of the values.

    Raises:
        ValueError: When called with an array of fewer than two axes or an
            unknown mode.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> values = nn.init.he_uniform()(mx.zeros((5, 300)), "fan_in")
        >>> bool(mx.all(mx.abs(values) <= 0.1))
        True
    """

    def initializer(
        a: mx.array,
        mode: Literal["fan_in", "fan_out"] = "fan_in",
        gain: float = 1.0,
    ) -> mx.array:
        bound = gain * math.sqrt(3.0 / _fan("he_uniform", a, mode))
        return mx.random.uniform(-bound, bound, a.shape, dtype)

    return initializer
