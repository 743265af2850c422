"""Initializers of matrices."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.nn.init.values import Initializer


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
