"""Initializers: functions from an array to fresh values of its shape.

They suit `Module.apply`, which calls them with every parameter. Arrays of more
than two axes count as (outputs, kernel ..., inputs), as the weights of layers do.
"""

from __future__ import annotations

import math
from typing import Callable, Literal

import mlx.core as mx

__all__ = [
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "normal",
    "orthogonal",
    "sparse",
    "uniform",
]

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


def identity(dtype: mx.Dtype = mx.float32) -> Initializer:
    """An identity matrix.

    Args:
        dtype: Of the result.

    Raises:
        ValueError: When called with anything but a square matrix.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.init.identity()(mx.zeros((2, 2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError(
                f"[identity] not a square matrix: {a.shape}. "
                "The two axes must have one length."
            )
        return mx.eye(a.shape[0], dtype=dtype)

    return initializer


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


def sparse(
    sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Initializer:
    """Normal values with a share of zeros in every row.

    Martens, "Deep learning via Hessian-free optimization" (2010), section 5. Rows
    are outputs, so every output keeps the same number of inputs.

    Args:
        sparsity: The share of zeros in [0, 1]; their number is rounded up.
        mean: The mean of the others.
        std: The standard deviation of the others.
        dtype: Of the result.

    Raises:
        ValueError: If `sparsity` is out of range; when called with anything but a
            matrix.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> values = nn.init.sparse(0.5)(mx.zeros((2, 4)))
        >>> mx.sum(values == 0, axis=1).tolist()
        [2, 2]
    """
    if not 0.0 <= sparsity <= 1.0:
        raise ValueError(
            f"[sparse] sparsity out of range: {sparsity}. It must be from 0 to 1."
        )

    def initializer(a: mx.array) -> mx.array:
        _check_matrix("sparse", a)
        values = mx.random.normal(a.shape, dtype, mean, std)
        zeros = math.ceil(sparsity * a.shape[1])
        order = mx.argsort(mx.random.uniform(shape=a.shape), axis=1)
        return mx.put_along_axis(values, order[:, :zeros], mx.array(0, dtype), axis=1)

    return initializer


def orthogonal(gain: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """A matrix whose rows or columns, whichever are fewer, are orthonormal.

    Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks" (2014), https://arxiv.org/abs/1312.6120. All such
    matrices are equally likely.

    Args:
        gain: A factor of the values.
        dtype: Of the result.

    Raises:
        ValueError: When called with anything but a matrix.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> q = nn.init.orthogonal()(mx.zeros((5, 3)))
        >>> bool(mx.allclose(q.T @ q, mx.eye(3), atol=1e-5))
        True
    """

    def initializer(a: mx.array) -> mx.array:
        _check_matrix("orthogonal", a)
        rows, columns = a.shape
        # The orthonormal factor of a normal matrix is uniformly distributed if
        # the diagonal of the other factor is positive, as in Gram-Schmidt
        # (Mezzadri, https://arxiv.org/abs/math-ph/0609050).
        drawn = mx.random.normal((max(rows, columns), min(rows, columns)))
        q = _orthonormal(drawn)
        return (gain * (q if rows >= columns else q.T)).astype(dtype)

    return initializer


def _check_matrix(op: str, a: mx.array) -> None:
    if a.ndim != 2:
        raise ValueError(f"[{op}] not a matrix: a {a.ndim}D array. Expected 2 axes.")


def _orthonormal(a: mx.array, block: int = 32) -> mx.array:
    """The columns of `a` made orthonormal by Gram-Schmidt, block after block.

    Each projection is done twice, which leaves no more than rounding (Giraud et
    al., https://doi.org/10.1007/s00211-005-0615-4).
    """
    done = mx.zeros((a.shape[0], 0))
    for start in range(0, a.shape[1], block):
        part = a[:, start : start + block]
        for _ in range(2):
            part = part - done @ (done.T @ part)
        ready = mx.zeros((a.shape[0], 0))
        for i in range(part.shape[1]):
            column = part[:, i : i + 1]
            for _ in range(2):
                column = column - ready @ (ready.T @ column)
            column = column * mx.rsqrt(mx.sum(mx.square(column)))
            ready = mx.concatenate([ready, column], axis=1)
        done = mx.concatenate([done, ready], axis=1)
        mx.eval(done)  # else the graph grows with the matrix
    return done
